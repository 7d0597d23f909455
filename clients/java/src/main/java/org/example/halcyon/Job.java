package org.example.halcyon;

import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.Map;

/**
 * An image to load, and the outputs to make of it. Jobs are immutable: each method returns a changed copy.
 *
 * <p>{@link #toJson} is the value of a message on the topic of jobs, for any Kafka producer. Messages should have the source as their key.
 */
public final class Job extends OutputFields<Job> {
    private Job(Map<String, Object> fields) {
        super(fields);
    }

    /** A job for a URL (https:, http:, file:, s3: or data:), or for "initials:JD", an avatar. */
    public static Job of(String source) {
        return of(Source.of(source));
    }

    /** A job for a source. */
    public static Job of(Source source) {
        return template().source(source);
    }

    /** A job without a source, for presets and batches. */
    public static Job template() {
        return new Job(Map.of());
    }

    @Override
    Job copy(Map<String, Object> fields) {
        return new Job(fields);
    }

    /** The id; null if none was set. */
    public String id() {
        return json().get("id") instanceof String id ? id : null;
    }

    /** The source; null if none was set. */
    public Source source() {
        return json().get("source") instanceof Source source ? source : null;
    }

    /** The image to load. */
    public Job source(Source source) {
        return with("source", source);
    }

    /** The images to load, in this order, if the source fails; at most 8. */
    public Job alternatives(Source... alternatives) {
        return with("alternatives", List.of(alternatives));
    }

    /** The picture to deliver if all of them fail. */
    public Job fallback(Source picture) {
        return with("fallback", picture);
    }

    /** Lets the job fail, regardless of the setting of the cluster. */
    public Job noFallback() {
        return with("fallback", false);
    }

    /** Several outputs, which inherit the fields of the job; at most 16. */
    public Job variants(Output... variants) {
        return with("variants", List.of(variants));
    }

    /** True if the job is ready with the variants that can be made when others fail. */
    public Job partial(boolean partial) {
        return with("partial", partial);
    }

    /** The name of the job, at most 128 characters. The client generates one for a job without an id. */
    public Job id(String id) {
        return with("id", id);
    }

    /** The number of seconds for which the result is stored. 0 follows the response of the origin; below 0, nothing is stored. */
    public Job maxAge(double seconds) {
        return with("maxAge", seconds);
    }

    /** The caches that the job uses. */
    public Job cache(Cache cache) {
        return with("cache", cache);
    }

    /** The way in which the bytes are delivered. */
    public Job delivery(Delivery delivery) {
        return with("delivery", delivery);
    }

    /** The lane, for jobs that are submitted over HTTP. In Kafka, the topic is the lane. */
    public Job priority(Priority priority) {
        return with("priority", priority);
    }

    /** True to load the source into the source cache only. No image is made. */
    public Job prefetch(boolean prefetch) {
        return with("prefetch", prefetch);
    }

    /** Renders the results again at an interval, of 10 s to one year, while jobs ask for them. */
    public Job refresh(Duration interval) {
        return with("refresh", seconds(interval));
    }

    /** Renders the results again shortly before they expire, while jobs ask for them. */
    public Job refreshBeforeExpiry() {
        return with("refresh", "beforeExpiry");
    }

    /** Starts the job at this time at the earliest, to the second. */
    public Job notBefore(Instant time) {
        return with("notBefore", time.truncatedTo(ChronoUnit.SECONDS).toString());
    }

    /** Starts the job this long after it was accepted at the earliest. */
    public Job notBefore(Duration delay) {
        return with("notBefore", seconds(delay));
    }

    /** The time after which the job fails as expired, to the second. */
    public Job deadline(Instant time) {
        return with("deadline", time.truncatedTo(ChronoUnit.SECONDS).toString());
    }

    /** The time since the job was accepted, or may start, after which it fails as expired. */
    public Job deadline(Duration limit) {
        return with("deadline", seconds(limit));
    }

    /** The place in which the image is shown. Of several jobs for one slot, only the newest is done. */
    public Job slot(String slot) {
        return with("slot", slot);
    }

    /** The order of the jobs for one slot: a higher number is newer. */
    public Job generation(long generation) {
        return with("generation", generation);
    }

    /** A JSON value that events return unchanged; at most 16 KiB. */
    public Job placeholder(Object json) {
        return with("placeholder", json);
    }

    /** A JSON value that events return unchanged; at most 16 KiB. */
    public Job altText(Object json) {
        return with("altText", json);
    }

    /** A JSON value that events return unchanged; at most 16 KiB. */
    public Job metadata(Object json) {
        return with("metadata", json);
    }

    /** Tags by which the results can be purged. */
    public Job tags(String... tags) {
        return with("tags", List.of(tags));
    }

    /** A URL, or a name from the settings of the workers, that is called when the job ends. */
    public Job webhook(String webhook) {
        return with("webhook", webhook);
    }

    /** Header fields for the requests for the source. */
    public Job headers(Map<String, String> headers) {
        return with("headers", Map.copyOf(headers));
    }

    /** The tenant that owns the results. */
    public Job tenant(String tenant) {
        return with("tenant", tenant);
    }

    /** The preset whose fields the job has. The job itself then has only fields that the preset allows. */
    public Job preset(String name) {
        return with("preset", name);
    }

    /** The preset whose fields the job has, in this version or a newer one. */
    public Job preset(String name, long version) {
        return with("preset", Json.object("name", name, "version", version));
    }

    /** The batch of a job that is sent to Kafka, and the index in it. Jobs in batches over HTTP need none. */
    public Job batch(String id, int index) {
        return with("batch", Json.object("id", id, "index", index));
    }

    static double seconds(Duration duration) {
        return duration.toNanos() / 1e9;
    }

    /** The lanes. */
    public enum Priority implements JsonValue {
        HIGH, NORMAL, LOW;

        @Override
        public String json() {
            return camelCase(this);
        }
    }

    /** The uses of the persistent result store: after the event, not at all, or before the event. */
    public enum StoreUse implements JsonValue {
        ALLOWED, EXCLUDED, REQUIRED;

        @Override
        public Object json() {
            return this == REQUIRED ? "required" : (Object) (this == ALLOWED);
        }
    }

    /**
     * The caches that a job uses.
     *
     * @param memory whether stored results are used
     * @param store the use of the persistent result store
     * @param source whether stored sources are used
     * @param reload true to ignore what is stored
     * @param onlyIfCached true to send no request to an origin
     */
    public record Cache(boolean memory, StoreUse store, boolean source, boolean reload, boolean onlyIfCached) implements JsonValue {
        /** The defaults: all caches are used. */
        public static final Cache ALL = new Cache(true, StoreUse.ALLOWED, true, false, false);
        /** No cache: the result is neither looked up nor stored. */
        public static final Cache NONE = new Cache(false, StoreUse.EXCLUDED, false, false, false);
        /** All caches are written, but none is read. */
        public static final Cache RELOAD = new Cache(true, StoreUse.ALLOWED, true, true, false);
        /** The event follows when the results are durable in the result store. */
        public static final Cache DURABLE = new Cache(true, StoreUse.REQUIRED, true, false, false);
        /** No request is sent to an origin. */
        public static final Cache ONLY_IF_CACHED = new Cache(true, StoreUse.ALLOWED, true, false, true);

        @Override
        public Map<String, Object> json() {
            return Json.object("memory", memory, "store", store, "source", source, "reload", reload, "onlyIfCached", onlyIfCached);
        }
    }

    /**
     * The way in which the bytes of a result are delivered.
     *
     * @param json the value in JSON
     */
    public record Delivery(Object json) implements JsonValue {
        /** Under the key in the event, and in the event itself. */
        public static final Delivery REFERENCE = new Delivery("reference"), INLINE = new Delivery("inline");

        /**
         * By HTTP PUT to a URL before the event. The URL may be a template with the placeholders {variant}, {index}, {width}, {height}, {format} and {key}.
         */
        public static Delivery put(String url) {
            return new Delivery(Json.object("put", url));
        }

        /** By HTTP PUT of each variant to a URL of its own. The keys are the names of the variants; a variant without a name has its index. */
        public static Delivery put(Map<String, String> urls) {
            return new Delivery(Json.object("put", Map.copyOf(urls)));
        }
    }
}
