package org.example.halcyon;

import java.util.List;

/**
 * Facts about a source (docs/info.md).
 *
 * @param format the format of the file, such as heic, detected from its bytes
 * @param mediaType the media type
 * @param bytes the size of the file
 * @param width the width in pixels, after rotation
 * @param height the height in pixels, after rotation
 * @param orientation the orientation of EXIF, 1 to 8; 1 is upright
 * @param frames the number of frames of an animation, or 0
 * @param duration the duration of an animation in milliseconds, or 0
 * @param loop the number of times that an animation is played, 0 for an endless loop; null if it does not say so
 * @param pages the number of pages of a PDF or TIFF, or 0
 * @param colorSpace the color model of the samples: rgb, gray, cmyk or other
 * @param bitsPerSample the number of bits of a sample, 8 to 16, or 0 for floating-point samples
 * @param alpha true if there is an alpha channel
 * @param profile the embedded ICC profile, or null
 * @param video the video that a frame or a contact sheet is from, or null
 * @param truncated true if the file is incomplete
 * @param exif the metadata of the camera, or null
 * @param location the place where the picture was taken; null if it is unknown or the job did not ask for it
 * @param blurhash the BlurHash, or null
 * @param dominantColor the color as #rrggbb, or null
 * @param palette the most important colors; empty if the job did not ask for them
 * @param thumbhash the ThumbHash in base64, or null
 * @param phash the perceptual hash, or null
 * @param faces the faces in the upright source, the most confident first; empty if the job did not ask for them
 */
public record Info(
    String format, String mediaType, long bytes, int width, int height, int orientation, int frames, long duration, Integer loop, int pages,
    String colorSpace, int bitsPerSample, boolean alpha, Profile profile, VideoInfo video, boolean truncated, Exif exif, Location location,
    String blurhash, String dominantColor, List<String> palette, String thumbhash, String phash, List<Event.Face> faces) {
    static Info of(Fields fields) {
        return new Info(
            fields.text("format"), fields.text("mediaType"), fields.integer("bytes"), (int) fields.integer("width"), (int) fields.integer("height"),
            (int) fields.integer("orientation"), (int) fields.integer("frames"), fields.integer("duration"), fields.optionalInteger("loop"),
            (int) fields.integer("pages"), fields.text("colorSpace"), (int) fields.integer("bitsPerSample"), fields.flag("alpha"),
            fields.optional("profile", Profile::of), fields.optional("video", VideoInfo::of), fields.flag("truncated"),
            fields.optional("exif", Exif::of), fields.optional("location", Location::of), fields.optionalText("blurhash"),
            fields.optionalText("dominantColor"), fields.texts("palette"), fields.optionalText("thumbhash"), fields.optionalText("phash"),
            fields.list("faces", Event.Face::of));
    }

    /**
     * An ICC profile.
     *
     * @param name its description, or null
     * @param colorSpace its color space, such as RGB, GRAY or CMYK, or null
     */
    public record Profile(String name, String colorSpace) {
        static Profile of(Fields fields) {
            return new Profile(fields.optionalText("name"), fields.optionalText("colorSpace"));
        }
    }

    /**
     * Facts about a video.
     *
     * @param codec the codec, such as h264
     * @param duration the duration of the whole video in milliseconds, or 0 if it is unknown
     */
    public record VideoInfo(String codec, long duration) {
        static VideoInfo of(Fields fields) {
            return new VideoInfo(fields.text("codec"), fields.integer("duration"));
        }
    }

    /**
     * The metadata of a camera. What it has not stored is null.
     *
     * @param make the maker of the camera
     * @param model the model of the camera
     * @param lensMake the maker of the lens
     * @param lensModel the model of the lens
     * @param software the software that wrote the file
     * @param artist the author
     * @param copyright the copyright notice
     * @param dateTimeOriginal the local time of the exposure, with the offset from UTC if it is known: 2026-05-01T12:34:56+02:00
     * @param exposureTime the exposure time in seconds
     * @param fNumber the f-number
     * @param iso the sensitivity
     * @param exposureBias the exposure bias in EV
     * @param focalLength the focal length in millimeters
     * @param focalLengthIn35mmFilm the equivalent focal length for 35 mm film, in millimeters
     * @param flash whether the flash fired
     */
    public record Exif(
        String make, String model, String lensMake, String lensModel, String software, String artist, String copyright, String dateTimeOriginal,
        Double exposureTime, Double fNumber, Double iso, Double exposureBias, Double focalLength, Double focalLengthIn35mmFilm, Boolean flash) {
        static Exif of(Fields fields) {
            return new Exif(
                fields.optionalText("make"), fields.optionalText("model"), fields.optionalText("lensMake"), fields.optionalText("lensModel"),
                fields.optionalText("software"), fields.optionalText("artist"), fields.optionalText("copyright"),
                fields.optionalText("dateTimeOriginal"), fields.optionalNumber("exposureTime"), fields.optionalNumber("fNumber"),
                fields.optionalNumber("iso"), fields.optionalNumber("exposureBias"), fields.optionalNumber("focalLength"),
                fields.optionalNumber("focalLengthIn35mmFilm"), fields.has("flash") ? Boolean.valueOf(fields.flag("flash")) : null);
        }
    }

    /**
     * A place on Earth, in WGS 84.
     *
     * @param latitude degrees north
     * @param longitude degrees east
     * @param altitude meters above sea level, or null if it is unknown
     */
    public record Location(double latitude, double longitude, Double altitude) {
        static Location of(Fields fields) {
            return new Location(fields.number("latitude"), fields.number("longitude"), fields.optionalNumber("altitude"));
        }
    }
}
