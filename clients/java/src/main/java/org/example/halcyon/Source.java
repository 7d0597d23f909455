package org.example.halcyon;

import java.util.Base64;
import java.util.Map;

/**
 * The image that a job loads.
 *
 * @param json the value in JSON
 */
public record Source(Object json) implements JsonValue {
    /** A URL (https:, http:, file:, s3: or data:), or "initials:JD" for an avatar. */
    public static Source of(String url) {
        return new Source(url);
    }

    /** An image at a URL that may change, such as a presigned one. URLs with equal cache keys lead to equal images. */
    public static Source of(String url, String cacheKey) {
        return new Source(Json.object("url", url, "cacheKey", cacheKey));
    }

    /** An image that is sent with the job. It is identified by its SHA-256. */
    public static Source bytes(byte[] file) {
        return new Source(Json.object("base64", Base64.getEncoder().encodeToString(file)));
    }

    /** An image that is sent with the job. It is identified by the cache key. */
    public static Source bytes(byte[] file, String cacheKey) {
        return new Source(Json.object("base64", Base64.getEncoder().encodeToString(file), "cacheKey", cacheKey));
    }

    /** An avatar with these letters, in CSS colors. For a color that is null, Halcyon chooses one. */
    public static Source initials(String letters, String background, String foreground) {
        Map<String, Object> members = Json.object("initials", letters, "background", background, "foreground", foreground);
        members.values().removeIf(value -> value == null);
        return new Source(members);
    }

    /** The frame of a video, a number of seconds after its start. */
    public static Source videoFrame(Source video, double seconds) {
        return new Source(Json.object("video", video, "seconds", seconds));
    }

    /** Frames of a video at equal distances, in rows. The width is that of each in pixels. */
    public static Source videoContactSheet(Source video, int columns, int rows, int width) {
        return new Source(Json.object("video", video, "contactSheet", Json.object("columns", columns, "rows", rows, "width", width)));
    }

    /** An animation of frames of a video at equal distances. The duration is in seconds, the width in pixels. */
    public static Source videoPreview(Source video, int frames, double duration, int width) {
        return new Source(Json.object("video", video, "preview", Json.object("frames", frames, "duration", duration, "width", width)));
    }
}
