package org.example.halcyon;

import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * The fields that a {@link Job} and an {@link Output} have in common. Both are immutable: each method returns a changed copy. Fields that are not set have
 * the defaults of the schema.
 *
 * @param <T> the type of the copies
 */
public abstract sealed class OutputFields<T extends OutputFields<T>> implements JsonValue permits Job, Output {
    private final Map<String, Object> fields;

    OutputFields(Map<String, Object> fields) {
        this.fields = Collections.unmodifiableMap(fields);
    }

    abstract T copy(Map<String, Object> fields);

    /** Sets a field by its name in JSON, for example one of a later version. The value is one of JSON, or a {@link JsonValue}. */
    public final T with(String name, Object value) {
        Map<String, Object> changed = new LinkedHashMap<>(fields);
        changed.put(name, value);
        return copy(changed);
    }

    /** Removes a field by its name in JSON. */
    public final T without(String name) {
        Map<String, Object> changed = new LinkedHashMap<>(fields);
        changed.remove(name);
        return copy(changed);
    }

    /** Resets a field of a variant, by its name in JSON, to its default, so that it is not inherited from the job. */
    public final T reset(String name) {
        return with(name, null);
    }

    /** The width of the display in points. Without a height, the height follows the aspect ratio. */
    public final T width(double points) {
        return with("width", points);
    }

    /** The height of the display in points. Without a width, the width follows the aspect ratio. */
    public final T height(double points) {
        return with("height", points);
    }

    /** The number of pixels per point, 1 to 4. */
    public final T screenScale(double scale) {
        return with("screenScale", scale);
    }

    /** The placement of the image in its display. */
    public final T contentMode(ContentMode mode) {
        return with("contentMode", mode);
    }

    /** The treatment of the excess where aspect ratios differ. */
    public final T scaleOptions(ScaleOptions options) {
        return with("scaleOptions", options);
    }

    /** The position of an image that scaleAspectFit places in a display with another aspect ratio: one of the content modes that do not scale. */
    public final T position(ContentMode position) {
        return with("position", position);
    }

    /** The part of the image that is used, from the top left corner, in fractions of its sides. */
    public final T cropRect(double x, double y, double width, double height) {
        return with("cropRect", rectangle(x, y, width, height));
    }

    /** The part of the image that is used, from the top left corner, in pixels. */
    public final T cropRectInPixels(double x, double y, double width, double height) {
        Map<String, Object> rectangle = rectangle(x, y, width, height);
        rectangle.put("unit", "pixels");
        return with("cropRect", rectangle);
    }

    private static Map<String, Object> rectangle(double x, double y, double width, double height) {
        return Json.object("x", x, "y", y, "width", width, "height", height);
    }

    /** Whether margins of the color of the pixel in the top left corner are removed before the image is sized. */
    public final T trim(boolean trims) {
        return with("trim", trims);
    }

    /**
     * Removes margins before the image is sized.
     *
     * @param tolerance the difference to the background up to which a pixel belongs to the margin, 0 to 254 levels; the default of Halcyon is 10
     * @param background the CSS color of the margin; null for that of the pixel in the top left corner
     * @param fuzz the share of the pixels of a row or a column that may differ in a margin, 0 to 0.5
     */
    public final T trim(int tolerance, String background, double fuzz) {
        Map<String, Object> trim = Json.object("tolerance", tolerance, "background", background, "fuzz", fuzz);
        trim.values().removeIf(value -> value == null);
        return with("trim", trim);
    }

    /** The part that is kept when the image is cropped. */
    public final T gravity(Gravity gravity) {
        return with("gravity", gravity);
    }

    /** False for no sizing at all. */
    public final T sizeForDisplay(boolean sizes) {
        return with("sizeForDisplay", sizes);
    }

    /** A rule for the size that replaces width and height. */
    public final T sizer(Sizer sizer) {
        return with("sizer", sizer);
    }

    /** Whether the image may be enlarged. */
    public final T upscale(boolean upscales) {
        return with("upscale", upscales);
    }

    /** The interpolation of pixels. */
    public final T interpolationQuality(Interpolation quality) {
        return with("interpolationQuality", quality);
    }

    /** True to average light, and not its encoding in sRGB, when the image is resized. */
    public final T linearLight(boolean isLinear) {
        return with("linearLight", isLinear);
    }

    /** The CSS color of the area that the image does not cover. */
    public final T background(String color) {
        return with("background", color);
    }

    /** The steps that the image goes through before it is cropped and sized, in this order. */
    public final T before(Processor... processors) {
        return with("before", List.of(processors));
    }

    /** The steps that the sized image goes through, in this order. */
    public final T processors(Processor... processors) {
        return with("processors", List.of(processors));
    }

    /** The format of the file. */
    public final T format(Format format) {
        return with("format", format);
    }

    /** The quality of lossy formats, 1 to 100. */
    public final T quality(int quality) {
        return with("quality", quality);
    }

    /** The similarity (SSIM) to the picture before encoding that the lowest sufficient quality is searched for, 0.5 to 0.9999. */
    public final T targetSimilarity(double target) {
        return with("quality", Map.of("target", target));
    }

    /** The maximum size of the file in bytes. */
    public final T maximumBytes(int bytes) {
        return with("maximumBytes", bytes);
    }

    /** Whether the image may become smaller than requested to have at most the maximum size in bytes. */
    public final T allowResize(boolean allows) {
        return with("allowResize", allows);
    }

    /** True for lossless WebP after a slight preprocessing. */
    public final T nearLossless(boolean nearLossless) {
        return with("nearLossless", nearLossless);
    }

    /** The resolution of colors in JPEG and AVIF: auto, 4:4:4 or 4:2:0. */
    public final T chromaSubsampling(String ratio) {
        return with("chromaSubsampling", ratio);
    }

    /** The number of bits per sample: 16 for PNG, TIFF and JPEG XL, 12 for AVIF, otherwise 8. */
    public final T bitDepth(int bits) {
        return with("bitDepth", bits);
    }

    /** The palette of a PNG or GIF: at most 2, 4, 16 or 256 colors, and the amount of error diffusion, 0 to 1. */
    public final T quantize(int colors, double dither) {
        return with("quantize", Map.of("colors", colors, "dither", dither));
    }

    /** The color space of the output: srgb or p3. */
    public final T profile(String profile) {
        return with("profile", profile);
    }

    /** Whether the encoding is lossless where the format supports it. */
    public final T lossless(boolean lossless) {
        return with("lossless", lossless);
    }

    /** The effort of the encoder, 0 to 9. */
    public final T effort(int effort) {
        return with("effort", effort);
    }

    /** True for a progressive JPEG or an interlaced PNG. */
    public final T progressive(boolean progressive) {
        return with("progressive", progressive);
    }

    /** False to keep EXIF, XMP and IPTC. */
    public final T stripMetadata(boolean strips) {
        return with("stripMetadata", strips);
    }

    /** True to keep the colors and the ICC profile of the source. */
    public final T keepProfile(boolean keeps) {
        return with("keepProfile", keeps);
    }

    /** The page of a PDF or TIFF, or the first frame of an animation, from 1. */
    public final T page(int page) {
        return with("page", page);
    }

    /** The maximum number of frames of an animation. */
    public final T frames(int frames) {
        return with("frames", frames);
    }

    /** The damage to a source that is tolerated. */
    public final T tolerance(Tolerance tolerance) {
        return with("tolerance", tolerance);
    }

    /** True if the event contains the BlurHash. */
    public final T blurhash(boolean blurhash) {
        return with("blurhash", blurhash);
    }

    /** True if the event contains the dominant color. */
    public final T dominantColor(boolean dominantColor) {
        return with("dominantColor", dominantColor);
    }

    /** True if the event contains the most important colors. */
    public final T palette(boolean palette) {
        return with("palette", palette);
    }

    /** True if the event contains the ThumbHash. */
    public final T thumbhash(boolean thumbhash) {
        return with("thumbhash", thumbhash);
    }

    /** True if the event contains the perceptual hash. */
    public final T phash(boolean phash) {
        return with("phash", phash);
    }

    /** True if the event contains the places of faces. */
    public final T faces(boolean faces) {
        return with("faces", faces);
    }

    /** True if facts about the source are reported instead of an image. */
    public final T info(boolean info) {
        return with("info", info);
    }

    /** Requests facts about the source with the location where the picture was taken. */
    public final T infoWithLocation() {
        return with("info", Json.object("location", true));
    }

    /** The fields in JSON. */
    @Override
    public final Map<String, Object> json() {
        return fields;
    }

    /** The fields as the text of a JSON object, as the schema defines it. Throws IllegalArgumentException if a value has no form in JSON, such as NaN. */
    public final String toJson() {
        return Json.write(fields);
    }

    /** Whether the other object is of the same class and has equal JSON. */
    @Override
    public final boolean equals(Object other) {
        return other != null && other.getClass() == getClass() && Json.parse(toJson()).equals(Json.parse(other.toString()));
    }

    @Override
    public final int hashCode() {
        return Json.parse(toJson()).hashCode();
    }

    @Override
    public final String toString() {
        return toJson();
    }

    /** The placement of an image in its display: the content modes of UIKit. */
    public enum ContentMode implements JsonValue {
        SCALE_TO_FILL, SCALE_ASPECT_FIT, SCALE_ASPECT_FILL, REDRAW, CENTER, TOP, BOTTOM, LEFT, RIGHT, TOP_LEFT, TOP_RIGHT, BOTTOM_LEFT, BOTTOM_RIGHT;

        @Override
        public String json() {
            return camelCase(this);
        }
    }

    /** The treatment of the excess: FIT_CROPS_EXCESS shrinks the display to the image, FILL_LEAVES_EXCESS lets it grow. */
    public enum ScaleOptions implements JsonValue {
        FIT_LEAVES_EXCESS_AND_FILL_CROPS_EXCESS, FIT_CROPS_EXCESS, FILL_LEAVES_EXCESS, FIT_CROPS_EXCESS_AND_FILL_LEAVES_EXCESS;

        @Override
        public String json() {
            return camelCase(this);
        }
    }

    /** The interpolation of pixels: nearest neighbor, linear, cubic, or Lanczos, before which {@code HIGH} shrinks less on load. */
    public enum Interpolation implements JsonValue {
        NONE, LOW, MEDIUM, HIGH, DEFAULT;

        @Override
        public String json() {
            return camelCase(this);
        }
    }

    /** The damage that is tolerated: none, or a JPEG, PNG, GIF or BMP that ends too early. */
    public enum Tolerance implements JsonValue {
        STRICT, TRUNCATED;

        @Override
        public String json() {
            return camelCase(this);
        }
    }

    /** The formats that workers can write; AUTO is that of the source. */
    public enum Format implements JsonValue {
        AUTO, BEST, JPEG, PNG, WEBP, AVIF, GIF, TIFF, JXL;

        @Override
        public String json() {
            return camelCase(this);
        }
    }

    /**
     * The part that is kept when an image is cropped.
     *
     * @param json the value in JSON
     */
    public record Gravity(Object json) implements JsonValue {
        /** The middle, the part that draws the eye, and the part with the highest entropy. */
        public static final Gravity CENTER = new Gravity("center"), ATTENTION = new Gravity("attention"), ENTROPY = new Gravity("entropy");
        /** The part with faces, or with all things that the detector finds; without any, that of ATTENTION. */
        public static final Gravity FACES = new Gravity("faces"), OBJECTS = new Gravity("objects");

        /**
         * The part with what the detector finds.
         *
         * @param kind faces or objects
         * @param confidence the minimum confidence, 0 to 1
         * @param fallback the gravity if nothing is found
         */
        public static Gravity detect(String kind, double confidence, Gravity fallback) {
            return new Gravity(Json.object("detect", kind, "confidence", confidence, "fallback", fallback));
        }

        /** The surroundings of a point, in fractions of the sides of the image. */
        public static Gravity point(double x, double y) {
            return new Gravity(Json.object("x", x, "y", y));
        }
    }

    /**
     * A rule for the size that replaces width and height.
     *
     * @param json the value in JSON
     */
    public record Sizer(Object json) implements JsonValue {
        /** The size of the image itself. */
        public static final Sizer NATURAL = new Sizer("natural");

        /** Limits the width to a number of points; the height stays in proportion. */
        public static Sizer aspectScaleDownByWidth(double points) {
            return new Sizer(Json.object("aspectScaleDownByWidth", points));
        }

        /** Limits the height to a number of points; the width stays in proportion. */
        public static Sizer aspectScaleDownByHeight(double points) {
            return new Sizer(Json.object("aspectScaleDownByHeight", points));
        }
    }

    /** The name of a constant in JSON. */
    static String camelCase(Enum<?> constant) {
        String[] words = constant.name().toLowerCase(Locale.ROOT).split("_");
        StringBuilder name = new StringBuilder(words[0]);
        Arrays.stream(words).skip(1).forEach(word -> name.append(Character.toUpperCase(word.charAt(0))).append(word.substring(1)));
        return name.toString();
    }
}
