package org.example.halcyon;

import java.net.URI;
import java.net.http.HttpClient;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;

/**
 * A client of a Halcyon cluster, connected to one of its gateways. It can be used by several threads.
 *
 * <pre>{@code
 * Halcyon halcyon = Halcyon.builder("http://127.0.0.1:8080").build();
 * Image image = halcyon.image(Job.of("https://example.org/cat.jpg").width(400).height(300));
 * }</pre>
 *
 * <p>Requests are repeated while the gateway is unreachable or overloaded. That is safe: a job keeps its id when it is sent again. All methods throw a
 * {@link HalcyonException} if the request fails, and InterruptedException if the thread is interrupted, which ends the request. {@link #async} has the same
 * methods with futures.
 */
public final class Halcyon {
    /** The version of this package, and of the Halcyon that it belongs to. */
    public static final String VERSION = "0.1.0";

    private final AsyncHalcyon async;

    private Halcyon(AsyncHalcyon async) {
        this.async = async;
    }

    /**
     * Begins to build a client. Nothing is sent yet.
     *
     * @param gateway the URL of a gateway, such as https://images.example.org, with or without a path in front of /v1
     */
    public static Builder builder(String gateway) {
        return new Builder(gateway);
    }

    /** The same client with methods that do not block. */
    public AsyncHalcyon async() {
        return async;
    }

    /** Submits a job. The brokers have stored it when this returns, and an event will report its end. The key needs the scope submit. */
    public AcceptedJob submit(Job job) throws InterruptedException {
        return await(async.submit(job));
    }

    /** Submits many jobs in one request. Returns the outcome for each job, in the same order. */
    public List<Submission> submit(List<Job> jobs) throws InterruptedException {
        return await(async.submit(jobs));
    }

    /** Returns the state of a job. The key needs the scope read. */
    public JobState jobState(String id) throws InterruptedException {
        return await(async.jobState(id, Duration.ZERO));
    }

    /** Returns the state of a job when it has ended, or when this time or gateway.maximumWait has passed. */
    public JobState jobState(String id, Duration wait) throws InterruptedException {
        return await(async.jobState(id, wait));
    }

    /**
     * Cancels a job. Its event tells whether that was in time. A job that has ended is a problem of the kind CONFLICT. The key needs the scope submit.
     */
    public void cancelJob(String id) throws InterruptedException {
        await(async.cancelJob(id));
    }

    /**
     * Waits for the end of a job and returns its images. The job continues when the wait ends early. It must have been submitted over HTTP: for one that was
     * sent to Kafka, use {@link #events}.
     *
     * @throws JobFailedException if the job failed
     * @throws JobCancelledException if it was cancelled
     * @throws JobSupersededException if it was superseded
     * @throws JobTimeoutException after {@link Builder#jobTimeout}
     */
    public Event.Ready waitFor(String id) throws InterruptedException {
        return await(async.waitFor(id));
    }

    /**
     * Submits a job, waits for its end and returns its images, with the exceptions of {@link #waitFor}. The job is cancelled when the thread is interrupted,
     * or after {@link Builder#jobTimeout}. The key needs the scopes submit and read.
     */
    public Event.Ready submitAndWait(Job job) throws InterruptedException {
        return await(async.submitAndWait(job));
    }

    /** Does the same as {@link #submitAndWait}, and loads the first image. */
    public Image image(Job job) throws InterruptedException {
        return await(async.image(job));
    }

    /** Does the same as {@link #submitAndWait}, and loads all images, in the order of the variants, without those that could not be made. */
    public List<Image> images(Job job) throws InterruptedException {
        return await(async.images(job));
    }

    /**
     * Returns the file of an output of a ready event, however it was delivered: from the event, by its key from the gateway, or else from its public URL or
     * the address of its upload. A file that is neither stored nor small enough for an event can be loaded once. The key needs the scope read.
     *
     * @throws NotDeliveredException if only the submitter knows the address of the upload
     */
    public byte[] imageData(Event.Variant variant) throws InterruptedException {
        return await(async.imageData(variant));
    }

    /** Returns the file of a stored result. It is a problem of the kind NOT_FOUND if there is none (any more). The key needs the scope read. */
    public byte[] storedImage(String key) throws InterruptedException {
        return await(async.storedImage(key));
    }

    /**
     * Returns the file at the public URL of a variant, or at any other URL. It is loaded without the key of the gateway, and a request that fails is not
     * repeated.
     */
    public byte[] download(String url) throws InterruptedException {
        return await(async.download(url));
    }

    /**
     * Returns the image of a job with one request. A stored result is returned at once; otherwise the job is done with the priority high while the gateway
     * waits. A failure of the job is a {@link ProblemException} with its code. The job may have the fields that {@link #renderUri} allows. The key needs the
     * scope submit.
     */
    public byte[] render(Job job) throws InterruptedException {
        return await(async.render(job));
    }

    /**
     * Returns facts about the source of a job, with one request. No image is rendered. The job may have the fields that facts depend on, and those of
     * caching. The key needs the scope submit.
     */
    public Info info(Job job) throws InterruptedException {
        return await(async.info(job));
    }

    /** Follows the events of the cluster from now on. No later event is missed. The key needs the scope read. */
    public EventStream events(EventFilter filter) throws InterruptedException {
        EventStream stream = new EventStream(async, filter, "");
        try {
            stream.start();
        } catch (HalcyonException | InterruptedException error) {
            stream.close();
            throw error;
        }
        return stream;
    }

    /** Follows the events of the cluster after the cursor of a message, which may be of another process. */
    public EventStream events(EventFilter filter, String cursor) {
        return new EventStream(async, filter, cursor);
    }

    /**
     * Submits jobs as a batch, whose end is reported by one event. The jobs are sent in one request, which the gateway limits (gateway.maximumBatchJobs);
     * more can be added with {@link BatchOptions#part}. The key needs the scope submit.
     */
    public BatchSubmission createBatch(List<Job> jobs, BatchOptions options) throws InterruptedException {
        return await(async.createBatch(jobs, options));
    }

    /** Submits a job with the fields of the template for each source, as a batch. */
    public BatchSubmission createBatch(Job template, List<Source> sources, BatchOptions options) throws InterruptedException {
        return await(async.createBatch(template, sources, options));
    }

    /**
     * Lets a worker submit a job with the fields of the template for each object of a bucket whose URL begins with the prefix, such as s3://pictures/2026/, as
     * a batch.
     */
    public BatchSubmission createBatch(Job template, String prefix, BatchOptions options) throws InterruptedException {
        return await(async.createBatch(template, prefix, options));
    }

    /** Closes an open batch, which has this number of accepted jobs. */
    public Batch closeBatch(String id, int total) throws InterruptedException {
        return await(async.closeBatch(id, total));
    }

    /** Returns the state of a batch. The key needs the scope read. */
    public Batch batch(String id) throws InterruptedException {
        return await(async.batch(id));
    }

    /** Returns the newest batches, at most limit (1 to 1000). The key needs the scope read. */
    public List<Batch> batches(int limit) throws InterruptedException {
        return await(async.batches(limit));
    }

    /** Waits until all jobs of a batch have ended, for any time. */
    public Batch waitForBatch(String id) throws InterruptedException {
        return await(async.waitForBatch(id));
    }

    /** Returns failed jobs of a batch, in the order of their ends: at most limit (1 to 1000) of them after the first start. The key needs the scope read. */
    public List<BatchFailure> batchFailures(String id, int start, int limit) throws InterruptedException {
        return await(async.batchFailures(id, start, limit));
    }

    /** Cancels all jobs of a batch that have not ended. A completed batch is a problem of the kind CONFLICT. The key needs the scope submit. */
    public Batch cancelBatch(String id) throws InterruptedException {
        return await(async.cancelBatch(id));
    }

    /**
     * Submits the failed jobs of a completed batch as a new batch. It is a problem of the kind CONFLICT if the batch is not completed, or no job failed. The
     * key needs the scope submit.
     */
    public BatchSubmission retryBatch(String id, BatchOptions options) throws InterruptedException {
        return await(async.retryBatch(id, options));
    }

    /**
     * Registers or replaces a preset, and returns it with its version. The key needs the scope admin, as for all methods of presets.
     *
     * @param template the fields of the jobs with the preset, without a source
     * @param overridable the names of fields that a job may set itself although they belong to the preset
     */
    public Preset putPreset(String name, Job template, List<String> overridable) throws InterruptedException {
        return await(async.putPreset(name, template, overridable));
    }

    /** Returns a preset. It is a problem of the kind NOT_FOUND if there is none. */
    public Preset preset(String name) throws InterruptedException {
        return await(async.preset(name));
    }

    /** Returns all presets. */
    public List<Preset> presets() throws InterruptedException {
        return await(async.presets());
    }

    /** Deletes a preset. It is a problem of the kind NOT_FOUND if there is none. */
    public void deletePreset(String name) throws InterruptedException {
        await(async.deletePreset(name));
    }

    /** Submits the jobs by which results were made with a preset again, with its current version, as a batch. */
    public BatchSubmission rerender(String name, RerenderOptions options) throws InterruptedException {
        return await(async.rerender(name, options));
    }

    /**
     * Returns the URL that renders a job, for requests with a key, or to be {@linkplain UrlSigner signed}.
     *
     * @throws IllegalArgumentException if the job has fields that a rendering cannot have, such as id, variants, delivery and metadata
     */
    public URI renderUri(Job job) {
        return URI.create(async.settings.gateway() + AsyncHalcyon.renderTarget(job));
    }

    /** Returns the URL of facts about the source of a job, for requests with a key, or to be {@linkplain UrlSigner signed}. */
    public URI infoUri(Job job) {
        return URI.create(async.settings.gateway() + AsyncHalcyon.infoTarget(job));
    }

    /** Returns the URL of a stored result, for requests with a key, or to be {@linkplain UrlSigner signed}. */
    public URI imageUri(String key) {
        return URI.create(async.settings.gateway() + Target.of("images", key));
    }

    /** Returns the URL of an event stream, for requests with a key, or to be {@linkplain UrlSigner signed} for the EventSource of browsers. */
    public URI eventsUri(EventFilter filter) {
        return URI.create(async.settings.gateway() + filter.target());
    }

    /** Waits for a future. If the thread is interrupted, cancels it, and lets a job be cancelled for at most two seconds. */
    static <T> T await(CompletableFuture<T> future) throws InterruptedException {
        try {
            return future.get();
        } catch (InterruptedException interruption) {
            future.cancel(true);
            if (future instanceof Operation<?> operation) operation.cleanup().thenApply(each -> null).completeOnTimeout(null, 2, TimeUnit.SECONDS).join();
            throw interruption;
        } catch (ExecutionException failure) {
            Throwable cause = AsyncHalcyon.explain(Operation.unwrap(failure.getCause()));
            if (cause instanceof RuntimeException exception) throw exception;
            if (cause instanceof Error error) throw error;
            throw new ConnectionException(cause);
        }
    }

    /** The settings of a client. */
    record Settings(
        String gateway, String key, Duration retryTimeout, Duration maximumBackoff, Duration jobTimeout, Duration longPollInterval, Duration readTimeout,
        long maximumImageBytes, long maximumEventBytes, long maximumResponseBytes) {}

    /** Builds clients. */
    public static final class Builder {
        private final String gateway;
        private String key;
        private HttpClient httpClient;
        private Duration retryTimeout = Duration.ofSeconds(30);
        private Duration maximumBackoff = Duration.ofSeconds(30);
        private Duration jobTimeout = Duration.ofMinutes(5);
        private Duration longPollInterval = Duration.ofSeconds(25);
        private Duration readTimeout = Duration.ofSeconds(60);
        private long maximumImageBytes = 64 << 20;
        private long maximumEventBytes = 4 << 20;
        private long maximumResponseBytes = 16 << 20;

        private Builder(String gateway) {
            URI uri = URI.create(gateway);
            if (uri.getHost() == null || !List.of("http", "https").contains(uri.getScheme()))
                throw new IllegalArgumentException(gateway + " is not the URL of a gateway");
            this.gateway = gateway.replaceAll("/+$", "");
        }

        /** Sets the API key, if the gateway has any. It is sent to this gateway only: redirects to its result store are followed without it. */
        public Builder key(String key) {
            this.key = key;
            return this;
        }

        /** Sets the client that sends the requests, for example with a proxy. It must not follow redirects. */
        public Builder httpClient(HttpClient client) {
            if (client.followRedirects() != HttpClient.Redirect.NEVER) throw new IllegalArgumentException("the client must not follow redirects");
            httpClient = client;
            return this;
        }

        /** Sets the time for which a request is repeated while the gateway is unreachable or overloaded. With zero, the first response counts. */
        public Builder retryTimeout(Duration timeout) {
            retryTimeout = timeout;
            return this;
        }

        /** Sets the longest pause between repetitions, plus a random part of up to a half, unless the gateway asks for a longer one. */
        public Builder maximumBackoff(Duration backoff) {
            maximumBackoff = backoff;
            return this;
        }

        /** Sets the time for which the end of a job is awaited. */
        public Builder jobTimeout(Duration timeout) {
            jobTimeout = timeout;
            return this;
        }

        /** Sets the time for which one request waits for the end of a job. */
        public Builder longPollInterval(Duration interval) {
            longPollInterval = interval;
            return this;
        }

        /** Sets the time without a byte after which a connection counts as lost. It must be longer than gateway.keepAliveInterval (15 s). */
        public Builder readTimeout(Duration timeout) {
            readTimeout = timeout;
            return this;
        }

        /** Sets the maximum size of an image. */
        public Builder maximumImageBytes(long bytes) {
            maximumImageBytes = bytes;
            return this;
        }

        /** Sets the maximum size of an event in a stream. */
        public Builder maximumEventBytes(long bytes) {
            maximumEventBytes = bytes;
            return this;
        }

        /** Sets the maximum size of any other response. */
        public Builder maximumResponseBytes(long bytes) {
            maximumResponseBytes = bytes;
            return this;
        }

        /** Builds the client. */
        public Halcyon build() {
            HttpClient client = httpClient;
            if (client == null) {
                // Without TLS, HTTP/2 would be asked for with a header, which proxies may not expect.
                HttpClient.Version version = gateway.startsWith("https:") ? HttpClient.Version.HTTP_2 : HttpClient.Version.HTTP_1_1;
                client = HttpClient.newBuilder().version(version).connectTimeout(readTimeout).build();
            }
            Settings settings = new Settings(
                gateway, key, retryTimeout, maximumBackoff, jobTimeout, longPollInterval, readTimeout, maximumImageBytes, maximumEventBytes,
                maximumResponseBytes);
            return new Halcyon(new AsyncHalcyon(settings, client));
        }
    }
}
