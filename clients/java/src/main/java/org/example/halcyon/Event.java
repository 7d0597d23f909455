package org.example.halcyon;

import java.time.Instant;
import java.util.Base64;
import java.util.List;
import java.util.Map;

/**
 * An event of a cluster, such as the end of a job: a CloudEvent of the topic of events.
 *
 * @param id a unique id, which stays the same if a job that is delivered twice causes the event again
 * @param type the type, such as halcyon.image.ready
 * @param subject the source as in the job or the purge, or the id of a batch; null if there is none
 * @param time the time
 * @param traceparent the W3C trace context; null if there is none
 * @param job the job that the event is about; null for purges and batches
 * @param data the content, by type
 */
public record Event(String id, String type, String subject, Instant time, String traceparent, Job job, Data data) {
    /**
     * Decodes an event from a record, a message of a Redis channel, or the body of a webhook.
     *
     * @throws InvalidResponseException if it is none
     */
    public static Event parse(String json) {
        return of(Fields.parse(json));
    }

    static Event of(Fields fields) {
        Fields data = fields.object("data", each -> each);
        String type = fields.text("type");
        Data content = switch (type) {
            case "halcyon.image.started" -> new Started();
            case "halcyon.image.progress" -> new Progress(
                data.text("stage"), data.integer("received"), data.integer("total"), (int) data.integer("attempt"));
            case "halcyon.image.ready" -> Ready.of(data);
            case "halcyon.image.failed" -> Failed.of(data);
            case "halcyon.image.cancelled" -> new Cancelled();
            case "halcyon.image.superseded" -> new Superseded(data.integer("supersededBy"));
            case "halcyon.image.purged" -> new Purged(
                data.optionalText("source"), data.optionalText("tag"), data.optionalText("key"), data.optionalText("tenant"),
                data.integer("count"), data.texts("cacheTags"));
            case "halcyon.batch.progress", "halcyon.batch.completed" -> data.object("batch", Batch::of);
            default -> new Other(data.members());
        };
        return new Event(
            fields.text("id"), type, fields.optionalText("subject"), fields.time("time"), fields.optionalText("traceparent"),
            data.optional("job", Job::of), content);
    }

    /** Whether the job has ended with this event. */
    public boolean endsJob() {
        return data instanceof Ready || data instanceof Failed || data instanceof Cancelled || data instanceof Superseded;
    }

    /**
     * Returns the images of a job from its last event.
     *
     * @throws JobFailedException if the job failed
     * @throws JobCancelledException if it was cancelled
     * @throws JobSupersededException if it was superseded
     * @throws InvalidResponseException if the event is not the end of a job
     */
    public Ready result() {
        String id = job == null ? "" : job.id;
        if (data instanceof Ready ready) return ready;
        if (data instanceof Failed failed) throw new JobFailedException(id, failed);
        if (data instanceof Cancelled) throw new JobCancelledException(id);
        if (data instanceof Superseded superseded) throw new JobSupersededException(id, superseded.by);
        throw new InvalidResponseException(type + " is not the end of a job", null);
    }

    /** The types of events, for {@link EventFilter}. */
    public enum Type {
        STARTED, PROGRESS, READY, FAILED, CANCELLED, SUPERSEDED, PURGED, BATCH_PROGRESS, BATCH_COMPLETED
    }

    /** The content of an event, by type. */
    public sealed interface Data permits Started, Progress, Ready, Failed, Cancelled, Superseded, Purged, Batch, Other {}

    /**
     * The job that an event is about.
     *
     * @param id the id
     * @param metadata the value of the job in JSON, or null
     * @param placeholder the value of the job in JSON, or null
     * @param altText the value of the job in JSON, or null
     * @param batch the id of its batch, or null
     * @param index the index in the batch, or null
     * @param preset the name of its preset, or null
     * @param presetVersion the version of the preset that was used, or 0
     */
    public record Job(
        String id, Object metadata, Object placeholder, Object altText, String batch, Integer index, String preset, long presetVersion) {
        static Job of(Fields fields) {
            Fields batch = fields.optional("batch", each -> each), preset = fields.optional("preset", each -> each);
            return new Job(
                fields.text("id"), fields.members().get("metadata"), fields.members().get("placeholder"), fields.members().get("altText"),
                batch == null ? null : batch.text("id"), batch == null ? null : batch.optionalInteger("index"),
                preset == null ? null : preset.text("name"), preset == null ? 0 : preset.integer("version"));
        }
    }

    /** Work for the job has started. */
    public record Started() implements Data {}

    /**
     * The source of the job is being loaded.
     *
     * @param stage fetch, or a stage of a later version
     * @param received the number of bytes received
     * @param total the number of bytes of the whole source, or 0 if its origin does not say
     * @param attempt the attempt at the job, from 1
     */
    public record Progress(String stage, long received, long total, int attempt) implements Data {}

    /**
     * The images are ready. The job has ended.
     *
     * @param job the job
     * @param key the key of the first variant; null for a prefetch
     * @param variants the outputs in the order of the variants of the job, without those of failures
     * @param failures the variants that could not be made, of a job with partial
     * @param expiresAt the expiry of the first result; null if one is not stored
     * @param origin the place that the results came from: memory, store, source-cache, network or coalesced
     * @param attempts the number of attempts
     * @param timings milliseconds by stage, and their total
     * @param source the loaded source; null for a prefetch
     * @param alternative the alternative that was used, or null
     * @param fallback the failure of a job that shows its fallback picture, or null
     * @param warnings problems that did not fail the job
     */
    public record Ready(
        Job job, String key, List<Variant> variants, List<VariantFailure> failures, Instant expiresAt, String origin, int attempts,
        Map<String, Double> timings, LoadedSource source, String alternative, Failed fallback, List<String> warnings) implements Data {
        static Ready of(Fields fields) {
            return new Ready(
                fields.object("job", Job::of), fields.optionalText("key"), fields.list("variants", Variant::of),
                fields.list("failures", each -> new VariantFailure((int) each.integer("variant"), each.code(), each.optionalText("message"))),
                fields.optionalTime("expiresAt"), fields.optionalText("origin"), Math.max(1, (int) fields.integer("attempts")),
                fields.numbers("timings"), fields.optional("source", LoadedSource::of), fields.optionalText("alternative"),
                fields.optional("fallback", Failed::of), fields.texts("warnings"));
        }
    }

    /**
     * An image.
     *
     * @param key the key of the result
     * @param name the name of the variant, or null
     * @param width the width in pixels
     * @param height the height in pixels
     * @param format the format of the file, such as jpeg
     * @param bytes the size of the file
     * @param sha256 the SHA-256 of the file in hexadecimal digits
     * @param frames the number of frames of an animation, or 0
     * @param blurhash the BlurHash, or null
     * @param dominantColor the color as #rrggbb, or null
     * @param trim the part of the upright source that remained when margins were removed, or null
     * @param palette the most important colors; empty if the job did not ask for them
     * @param thumbhash the ThumbHash in base64, or null
     * @param phash the perceptual hash, or null
     * @param faces the faces, the most confident first; empty if the job did not ask for them
     * @param info the facts about the source; null if the job did not ask for them
     * @param encoding the outcome of the search for the size or the quality, or null
     * @param expiresAt the expiry; null if the result is not stored
     * @param url the public URL in the result store, or null
     * @param put the address to which the file was uploaded, or null
     * @param data the file in base64, if it was delivered in the event, or null
     */
    public record Variant(
        String key, String name, int width, int height, String format, long bytes, String sha256, int frames, String blurhash,
        String dominantColor, Rect trim, List<String> palette, String thumbhash, String phash, List<Face> faces, Info info, Encoding encoding,
        Instant expiresAt, String url, String put, String data) {
        static Variant of(Fields fields) {
            return new Variant(
                fields.text("key"), fields.optionalText("name"), (int) fields.integer("width"), (int) fields.integer("height"),
                fields.text("format"), fields.integer("bytes"), fields.text("sha256"), (int) fields.integer("frames"),
                fields.optionalText("blurhash"), fields.optionalText("dominantColor"), fields.optional("trim", Rect::of),
                fields.texts("palette"),
                fields.optionalText("thumbhash"), fields.optionalText("phash"), fields.list("faces", Face::of),
                fields.optional("info", Info::of), fields.optional("encoding", Encoding::of),
                fields.optionalTime("expiresAt"), fields.optionalText("url"), fields.optionalText("put"), fields.optionalText("data"));
        }

        /** The file, if it was delivered in the event, or null. */
        byte[] file() {
            try {
                return data == null ? null : Base64.getDecoder().decode(data);
            } catch (IllegalArgumentException error) {
                throw new InvalidResponseException("data is not base64", error);
            }
        }
    }

    /**
     * A part of an image, in pixels from its top left corner.
     *
     * @param x the left side
     * @param y the upper side
     * @param width the width
     * @param height the height
     */
    public record Rect(int x, int y, int width, int height) {
        static Rect of(Fields fields) {
            return new Rect((int) fields.integer("x"), (int) fields.integer("y"), (int) fields.integer("width"), (int) fields.integer("height"));
        }
    }

    /**
     * A face in an image.
     *
     * @param place the rectangle around the face
     * @param confidence the confidence of the detector, 0 to 1
     */
    public record Face(Rect place, double confidence) {
        static Face of(Fields fields) {
            double confidence = fields.members().get("confidence") instanceof Number number ? number.doubleValue() : 0;
            return new Face(Rect.of(fields), confidence);
        }
    }

    /**
     * The outcome of the search for the size or the quality of a file.
     *
     * @param quality the chosen quality, or 0 for a lossless file
     * @param colors the chosen number of colors of the palette, or 0
     * @param similarity the similarity (SSIM) to the picture before encoding, or null if it was not measured
     * @param encodings the number of encoded files, or 0 if the file of the source was used
     */
    public record Encoding(int quality, int colors, Double similarity, int encodings) {
        static Encoding of(Fields fields) {
            return new Encoding(
                (int) fields.integer("quality"), (int) fields.integer("colors"), fields.optionalNumber("similarity"),
                (int) fields.integer("encodings"));
        }
    }

    /**
     * A variant that could not be made.
     *
     * @param variant the index in the job, from 0
     * @param code the reason
     * @param message a description for people
     */
    public record VariantFailure(int variant, FailureCode code, String message) {}

    /**
     * The source of a job.
     *
     * @param status the status of the HTTP response, or 0
     * @param etag the entity tag, or null
     * @param bytes the size of the file
     * @param format the format of the file, such as heic
     * @param width the width in pixels, after rotation
     * @param height the height in pixels, after rotation
     * @param truncated true if the file is incomplete
     */
    public record LoadedSource(int status, String etag, long bytes, String format, int width, int height, boolean truncated) {
        static LoadedSource of(Fields fields) {
            return new LoadedSource(
                (int) fields.integer("status"), fields.optionalText("etag"), fields.integer("bytes"), fields.text("format"),
                (int) fields.integer("width"), (int) fields.integer("height"), fields.flag("truncated"));
        }
    }

    /**
     * The job has failed, and has ended.
     *
     * @param code the reason
     * @param codeName the code as in the event, also if this version does not know it
     * @param message a description for people
     * @param retryable true if the same job may succeed later
     * @param attempts the number of attempts, or 0 for the failure behind a fallback picture
     * @param timings milliseconds by stage, and their total
     */
    public record Failed(FailureCode code, String codeName, String message, boolean retryable, int attempts, Map<String, Double> timings)
        implements Data {
        static Failed of(Fields fields) {
            return new Failed(
                fields.code(), fields.text("code"), fields.text("message"), fields.flag("retryable"), (int) fields.integer("attempts"),
                fields.numbers("timings"));
        }
    }

    /** The job was cancelled, and has ended. */
    public record Cancelled() implements Data {}

    /**
     * The job was superseded by a newer one for the same slot, and has ended.
     *
     * @param by the generation of the other job
     */
    public record Superseded(long by) implements Data {}

    /**
     * Results were purged: those of a source or tag, that of a key, or all of a tenant.
     *
     * @param source the source, or null
     * @param tag the tag, or null
     * @param key the key, or null
     * @param tenant the tenant of the results, or null
     * @param count the number of results
     * @param cacheTags the tags by which CDNs find responses with the results
     */
    public record Purged(String source, String tag, String key, String tenant, long count, List<String> cacheTags) implements Data {}

    /**
     * An event of a type that this version does not know.
     *
     * @param data its content in JSON
     */
    public record Other(Map<String, Object> data) implements Data {}
}
