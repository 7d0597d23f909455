package org.example.halcyon;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;
import java.util.stream.Collectors;

/**
 * A client whose methods do not block. They are those of {@link Halcyon}, which documents them. The futures end with the same exceptions. Cancelling a
 * future cancels its requests, and the job of {@link #submitAndWait}, {@link #image} or {@link #images}.
 */
public final class AsyncHalcyon {
    private static final String JSON = "application/json";

    final Halcyon.Settings settings;
    private final HttpClient http;

    AsyncHalcyon(Halcyon.Settings settings, HttpClient http) {
        this.settings = settings;
        this.http = http;
    }

    /** Submits a job. */
    public CompletableFuture<AcceptedJob> submit(Job job) {
        return call(new Request("POST", Target.of("jobs")).body(JSON, named(job).toJson()), AcceptedJob::of);
    }

    /** Submits many jobs in one request. */
    public CompletableFuture<List<Submission>> submit(List<Job> jobs) {
        if (jobs.isEmpty()) return CompletableFuture.completedFuture(List.of());
        Request request = new Request("POST", Target.of("jobs")).body("application/x-ndjson", lines(jobs.stream().map(AsyncHalcyon::named).toList()));
        return Operation.map(send(request), response -> {
            List<Submission> submissions = response.text().lines().map(Submission::of).toList();
            if (submissions.size() == jobs.size()) return submissions;
            throw new InvalidResponseException(submissions.size() + " results for " + jobs.size() + " jobs", null);
        });
    }

    /** Returns the state of a job, when it has ended or the time to wait has passed. */
    public CompletableFuture<JobState> jobState(String id, Duration wait) {
        Duration time = wait.compareTo(settings.longPollInterval()) > 0 ? settings.longPollInterval() : wait;
        Request request = new Request("GET", Target.of("jobs", id).with("wait", String.format(Locale.ROOT, "%.3f", Job.seconds(time))));
        request.wait = time;
        return call(request, JobState::of);
    }

    /** Cancels a job. */
    public CompletableFuture<Void> cancelJob(String id) {
        return Operation.map(send(new Request("DELETE", Target.of("jobs", id))), response -> null);
    }

    /** Waits for the end of a job. */
    public CompletableFuture<Event.Ready> waitFor(String id) {
        Operation<Event.Ready> operation = new Operation<>();
        waitFor(id, operation, System.nanoTime() + settings.jobTimeout().toNanos());
        return operation;
    }

    private void waitFor(String id, Operation<Event.Ready> operation, long deadline) {
        long start = System.nanoTime();
        if (start >= deadline) {
            operation.completeExceptionally(new JobTimeoutException(id));
            return;
        }
        operation.await(jobState(id, Duration.ofNanos(deadline - start)), (state, error) -> {
            if (error != null) operation.completeExceptionally(error);
            else if (state.hasEnded()) operation.complete(state.result());
            else {
                // Limits the rate at a gateway that responds at once.
                Duration pause = Duration.ofMillis(250).minusNanos(System.nanoTime() - start);
                operation.await(Operation.delay(pause.isNegative() ? Duration.ZERO : pause), (none, never) -> waitFor(id, operation, deadline));
            }
        });
    }

    /** Submits a job and waits for its end. */
    public CompletableFuture<Event.Ready> submitAndWait(Job job) {
        Job named = named(job);
        // The submission is completed even if the operation is cancelled: only a job that the gateway has written can be cancelled.
        CompletableFuture<AcceptedJob> submission = submit(named);
        Operation<Event.Ready> operation = new Operation<>();
        CompletableFuture<Void> cleanup = new CompletableFuture<>();
        operation.setCleanup(cleanup);
        operation.whenComplete((ready, error) -> {
            if (error instanceof CancellationException || error instanceof JobTimeoutException)
                submission.thenCompose(accepted -> cancelJob(named.id())).whenComplete((none, failure) -> cleanup.complete(null));
            else cleanup.complete(null);
        });
        operation.await(submission.copy(), (accepted, error) -> {
            if (error != null) operation.completeExceptionally(error);
            else operation.await(waitFor(named.id()), operation::end);
        });
        return operation;
    }

    /** Submits a job, waits for its end and loads its first image. */
    public CompletableFuture<Image> image(Job job) {
        return Operation.then(submitAndWait(byReference(job)), ready -> {
            if (ready.variants().isEmpty()) throw new InvalidResponseException("the job has no image", null);
            return image(ready, ready.variants().get(0));
        });
    }

    private CompletableFuture<Image> image(Event.Ready ready, Event.Variant variant) {
        return Operation.map(imageData(variant), data -> new Image(data, variant, ready));
    }

    /** Submits a job, waits for its end and loads all images. */
    public CompletableFuture<List<Image>> images(Job job) {
        return Operation.then(submitAndWait(byReference(job)), ready -> {
            List<CompletableFuture<Image>> images = ready.variants().stream().map(each -> image(ready, each)).toList();
            return Operation.map(
                CompletableFuture.allOf(images.toArray(CompletableFuture[]::new)), none -> images.stream().map(CompletableFuture::join).toList());
        });
    }

    /** The job with a delivery from which the client can load: stored images need not be in the event too. */
    private static Job byReference(Job job) {
        return Job.Delivery.INLINE.equals(job.json().get("delivery")) ? job.delivery(Job.Delivery.REFERENCE) : job;
    }

    /** Returns the file of an output of a ready event, however it was delivered. */
    public CompletableFuture<byte[]> imageData(Event.Variant variant) {
        byte[] file = variant.file();
        if (file != null) return CompletableFuture.completedFuture(file);
        Operation<byte[]> operation = new Operation<>();
        List<String> addresses = new ArrayList<>();
        if (variant.url() != null) addresses.add(variant.url());
        if (variant.put() != null) addresses.add(variant.put());
        operation.await(storedImage(variant.key()), (data, error) -> {
            if (addresses.isEmpty() || !isNotFound(error)) operation.end(data, error);
            else downloadFirst(addresses, error, operation);
        });
        return operation;
    }

    private static boolean isNotFound(Throwable error) {
        return error instanceof ProblemException problem && problem.kind() == ProblemException.Kind.NOT_FOUND;
    }

    /** Ends an operation with the file at the first address that has one, or with the last problem. */
    private void downloadFirst(List<String> addresses, Throwable missing, Operation<byte[]> operation) {
        if (addresses.isEmpty()) {
            operation.completeExceptionally(missing);
            return;
        }
        String address = addresses.get(0);
        if (address.matches("[^/]+//[^/]+/?")) {
            operation.completeExceptionally(new NotDeliveredException(address));
            return;
        }
        operation.await(repeat(() -> download(address)), (data, error) -> {
            if (error instanceof ProblemException) downloadFirst(addresses.subList(1, addresses.size()), error, operation);
            else operation.end(data, error);
        });
    }

    /** Returns the file of a stored result. */
    public CompletableFuture<byte[]> storedImage(String key) {
        Request request = new Request("GET", Target.of("images", key));
        request.limit = settings.maximumImageBytes();
        return repeat(() -> Operation.then(exchange(request.builder().build(), request.limit), response -> {
            if (response.status() != 302) return CompletableFuture.completedFuture(response.body());
            return download(response.header("Location")); // gateway.redirectsToStore
        }));
    }

    /** Returns the file at a public URL, without sending the key of the gateway. */
    public CompletableFuture<byte[]> download(String url) {
        HttpRequest request;
        try {
            request = HttpRequest.newBuilder(URI.create(url)).timeout(settings.readTimeout()).build();
        } catch (IllegalArgumentException | NullPointerException error) {
            return CompletableFuture.failedFuture(new InvalidResponseException(url + " is not a URL", error));
        }
        return Operation.map(exchange(request, settings.maximumImageBytes()), response -> {
            if (response.status() == 200) return response.body();
            throw ProblemException.of(response.status(), "", null);
        });
    }

    /** Returns the image of a job with one request. */
    public CompletableFuture<byte[]> render(Job job) {
        Request request = new Request("GET", renderTarget(job));
        request.limit = settings.maximumImageBytes();
        request.wait = settings.longPollInterval();
        return Operation.map(send(request), Response::body);
    }

    /** Returns facts about the source of a job with one request. */
    public CompletableFuture<Info> info(Job job) {
        Request request = new Request("GET", infoTarget(job));
        request.wait = settings.longPollInterval();
        return call(request, Info::of);
    }

    /** Submits jobs as a batch. */
    public CompletableFuture<BatchSubmission> createBatch(List<Job> jobs, BatchOptions options) {
        return createBatch("application/x-ndjson", lines(jobs), options.named());
    }

    /** Submits a job with the fields of the template for each source. */
    public CompletableFuture<BatchSubmission> createBatch(Job template, List<Source> sources, BatchOptions options) {
        return createBatch(JSON, Json.write(Json.object("template", template, "sources", sources)), options.named());
    }

    /** Lets a worker submit a job with the fields of the template for each object of a bucket. */
    public CompletableFuture<BatchSubmission> createBatch(Job template, String prefix, BatchOptions options) {
        return createBatch(JSON, Json.write(Json.object("template", template, "prefix", prefix)), options.named());
    }

    private CompletableFuture<BatchSubmission> createBatch(String type, String body, BatchOptions options) {
        Target target = options.addTo(Target.of("batches")).with("first", options.first() > 0 ? options.first() : null)
            .with("close", options.open() ? false : null);
        return submitBatch(options.id(), new Request("POST", target).body(type, body));
    }

    /**
     * Sends a request that creates a batch. If an earlier attempt has closed the batch, and only its response was lost, the repeated request is a conflict.
     */
    private CompletableFuture<BatchSubmission> submitBatch(String id, Request request) {
        Operation<BatchSubmission> operation = new Operation<>();
        operation.await(call(request, BatchSubmission::of), (submission, error) -> {
            boolean isConflict = error instanceof ProblemException problem && problem.kind() == ProblemException.Kind.CONFLICT;
            if (!isConflict || request.attempts == 1) {
                operation.end(submission, error);
                return;
            }
            operation.await(batch(id), (batch, failure) -> {
                if (failure != null || batch.total() == null) operation.completeExceptionally(error);
                else operation.complete(new BatchSubmission(id, batch.total(), 0, 0, List.of()));
            });
        });
        return operation;
    }

    /** Closes an open batch. */
    public CompletableFuture<Batch> closeBatch(String id, int total) {
        return call(new Request("POST", Target.of("batches", id, "close")).body(JSON, "{\"total\": " + total + "}"), Batch::of);
    }

    /** Returns the state of a batch. */
    public CompletableFuture<Batch> batch(String id) {
        return call(new Request("GET", Target.of("batches", id)), Batch::of);
    }

    /** Returns the newest batches. */
    public CompletableFuture<List<Batch>> batches(int limit) {
        return call(new Request("GET", Target.of("batches").with("limit", limit)), fields -> fields.list("batches", Batch::of));
    }

    /** Waits until all jobs of a batch have ended. */
    public CompletableFuture<Batch> waitForBatch(String id) {
        Operation<Batch> operation = new Operation<>();
        waitForBatch(id, operation, Duration.ofMillis(100));
        return operation;
    }

    private void waitForBatch(String id, Operation<Batch> operation, Duration pause) {
        Duration longest = Duration.ofSeconds(2), next = pause.multipliedBy(2);
        operation.await(batch(id), (batch, error) -> {
            if (error != null || batch.isCompleted()) operation.end(batch, error);
            else operation.await(
                Operation.delay(pause), (none, never) -> waitForBatch(id, operation, next.compareTo(longest) > 0 ? longest : next));
        });
    }

    /** Returns failed jobs of a batch. */
    public CompletableFuture<List<BatchFailure>> batchFailures(String id, int start, int limit) {
        Target target = Target.of("batches", id, "failures").with("start", start).with("limit", limit);
        return call(new Request("GET", target), fields -> fields.list("failures", BatchFailure::of));
    }

    /** Cancels all jobs of a batch that have not ended. */
    public CompletableFuture<Batch> cancelBatch(String id) {
        return call(new Request("DELETE", Target.of("batches", id)), Batch::of);
    }

    /** Submits the failed jobs of a completed batch as a new batch. */
    public CompletableFuture<BatchSubmission> retryBatch(String id, BatchOptions options) {
        BatchOptions named = options.named();
        return submitBatch(named.id(), new Request("POST", named.addTo(Target.of("batches", id, "retry"))).body(JSON, "{}"));
    }

    /** Registers or replaces a preset. */
    public CompletableFuture<Preset> putPreset(String name, Job template, List<String> overridable) {
        String body = Json.write(Json.object("job", template, "overridable", overridable));
        return call(new Request("PUT", Target.of("presets", name)).body(JSON, body), Preset::of);
    }

    /** Returns a preset. */
    public CompletableFuture<Preset> preset(String name) {
        return call(new Request("GET", Target.of("presets", name)), Preset::of);
    }

    /** Returns all presets. */
    public CompletableFuture<List<Preset>> presets() {
        return call(new Request("GET", Target.of("presets")), fields -> fields.list("presets", Preset::of));
    }

    /** Deletes a preset. */
    public CompletableFuture<Void> deletePreset(String name) {
        Request request = new Request("DELETE", Target.of("presets", name));
        Operation<Void> operation = new Operation<>();
        // An earlier attempt may have deleted it, whose response was lost.
        operation.await(send(request), (response, error) -> operation.end(null, request.attempts > 1 && isNotFound(error) ? null : error));
        return operation;
    }

    /** Submits the jobs by which results were made with a preset again. */
    public CompletableFuture<BatchSubmission> rerender(String name, RerenderOptions options) {
        RerenderOptions named = options.named();
        return submitBatch(named.id(), new Request("POST", named.addTo(Target.of("presets", name, "rerender"))).body(JSON, "{}"));
    }

    // Requests.

    /** A request to a gateway that may be repeated. */
    final class Request {
        private final String method;
        private final String target;
        private String type;
        private String body;
        private long limit = settings.maximumResponseBytes();
        private Duration wait = Duration.ZERO;
        /** The number of attempts. All but the last had no definite result, so that the request may have been carried out. */
        private volatile int attempts;

        Request(String method, Target target) {
            this.method = method;
            this.target = target.toString();
        }

        Request body(String type, String body) {
            this.type = type;
            this.body = body;
            return this;
        }

        HttpRequest.Builder builder() {
            HttpRequest.Builder builder = HttpRequest.newBuilder(URI.create(settings.gateway() + target)).timeout(settings.readTimeout().plus(wait))
                .header("User-Agent", "halcyon-java/" + Halcyon.VERSION);
            if (type != null) builder.header("Content-Type", type);
            if (settings.key() != null) builder.header("Authorization", "Bearer " + settings.key());
            return builder.method(method, body == null ? HttpRequest.BodyPublishers.noBody() : HttpRequest.BodyPublishers.ofString(body));
        }
    }

    record Response(int status, HttpResponse<?> http, byte[] body) {
        String text() {
            return new String(body, StandardCharsets.UTF_8);
        }

        String header(String name) {
            return http.headers().firstValue(name).orElse(null);
        }
    }

    private <T> CompletableFuture<T> call(Request request, java.util.function.Function<Fields, T> decode) {
        return Operation.map(send(request), response -> decode.apply(Fields.parse(response.text())));
    }

    /** Sends a request until it succeeds, for up to retryTimeout. */
    private CompletableFuture<Response> send(Request request) {
        return repeat(() -> {
            request.attempts++;
            return exchange(request.builder().build(), request.limit);
        });
    }

    /** Repeats an operation until it succeeds or its error is final, for up to retryTimeout. */
    private <T> CompletableFuture<T> repeat(Supplier<CompletableFuture<T>> attempt) {
        Operation<T> operation = new Operation<>();
        repeat(attempt, operation, new Backoff(Duration.ofMillis(200), settings.maximumBackoff()), 0);
        return operation;
    }

    private <T> void repeat(Supplier<CompletableFuture<T>> attempt, Operation<T> operation, Backoff backoff, long deadline) {
        operation.await(attempt.get(), (result, error) -> {
            if (!(error instanceof HalcyonException known) || !known.isTransient()) {
                operation.end(result, error);
                return;
            }
            long now = System.nanoTime(), end = deadline == 0 ? now + settings.retryTimeout().toNanos() : deadline;
            Duration pause = backoff.next(error);
            if (now + pause.toNanos() - end >= 0) operation.completeExceptionally(error);
            else operation.await(Operation.delay(pause), (none, never) -> repeat(attempt, operation, backoff, end));
        });
    }

    /** Sends a request once. The response has a status below 400. */
    private CompletableFuture<Response> exchange(HttpRequest request, long limit) {
        Operation<Response> operation = new Operation<>();
        operation.await(
            http.sendAsync(request, info -> new Body(info.statusCode() < 400 ? limit : 1 << 20, settings.readTimeout())), (http, error) -> {
                if (error != null) operation.completeExceptionally(explain(error));
                else if (http.statusCode() < 400) operation.complete(new Response(http.statusCode(), http, http.body()));
                else operation.completeExceptionally(ProblemException.of(
                    http.statusCode(), new String(http.body(), StandardCharsets.UTF_8), http.headers().firstValue("Retry-After").orElse(null)));
            });
        return operation;
    }

    /** The exception of the client for one of the connection. */
    static Throwable explain(Throwable error) {
        for (Throwable cause = error; cause != null; cause = cause.getCause()) if (cause instanceof HalcyonException known) return known;
        return error instanceof java.io.IOException ? new ConnectionException(error) : error;
    }

    CompletableFuture<HttpResponse<EventBody>> openEvents(EventFilter filter, String cursor) {
        HttpRequest.Builder builder = new Request("GET", filter.target()).builder().header("Accept", "text/event-stream")
            .header("Cache-Control", "no-store");
        if (!cursor.isEmpty()) builder.header("Last-Event-ID", cursor);
        return http.sendAsync(builder.build(), info -> new EventBody());
    }

    /** The job with an id, so that it can be sent again. */
    private static Job named(Job job) {
        return job.id() == null ? job.id(UUID.randomUUID().toString()) : job;
    }

    private static String lines(List<Job> jobs) {
        return jobs.stream().map(job -> job.toJson() + "\n").collect(Collectors.joining());
    }

    // Renderings.

    private static final List<String> RENDER_PARAMETERS = List.of(
        "source", "fallback", "width", "height", "screenScale", "contentMode", "scaleOptions", "position", "cropRect", "trim", "gravity",
        "sizeForDisplay", "sizer", "upscale", "interpolationQuality", "linearLight", "background", "before", "processors", "format", "quality",
        "lossless", "effort", "progressive", "stripMetadata", "keepProfile", "page", "frames", "maximumBytes", "allowResize", "nearLossless",
        "chromaSubsampling", "bitDepth", "quantize", "profile", "tolerance", "maxAge", "cache", "tenant", "tags", "priority");

    static Target renderTarget(Job job) {
        Map<String, Object> fields = Json.parseObject(job.toJson());
        Object preset = fields.remove("preset");
        if (preset != null && !(preset instanceof String)) throw new IllegalArgumentException("a rendering cannot require a version of a preset");
        Target target = preset == null ? Target.of("render") : Target.of("render", "preset", (String) preset);
        return with(target, fields, RENDER_PARAMETERS);
    }

    private static final List<String> INFO_PARAMETERS = List.of(
        "source", "location", "blurhash", "dominantColor", "palette", "thumbhash", "phash", "faces", "page", "tolerance", "maxAge", "cache", "tenant", "tags",
        "priority");

    static Target infoTarget(Job job) {
        Map<String, Object> fields = Json.parseObject(job.toJson());
        if (fields.remove("info") instanceof Map<?, ?> options) fields.put("location", options.get("location"));
        return with(Target.of("info"), fields, INFO_PARAMETERS);
    }

    private static Target with(Target target, Map<String, Object> fields, List<String> names) {
        for (String name : names) target.with(name, renderParameter(name, fields.remove(name)));
        if (!fields.isEmpty()) throw new IllegalArgumentException("a rendering cannot have the fields " + fields.keySet());
        return target;
    }

    /** Texts and numbers as they are, rectangles, points and tags as lists, and all else as JSON. */
    private static Object renderParameter(String name, Object value) {
        if (value == null || value instanceof String) return value;
        List<?> list = switch (name) {
            case "cropRect" -> listed(value, "x", "y", "width", "height", "unit");
            case "gravity" -> value instanceof Map<?, ?> map && map.containsKey("detect") ? null : listed(value, "x", "y");
            case "tags" -> (List<?>) value;
            default -> null;
        };
        if (list == null) return Json.write(value);
        return list.stream().map(each -> each instanceof String text ? text : Json.write(each)).collect(Collectors.joining(","));
    }

    private static List<Object> listed(Object value, String... names) {
        List<Object> list = new ArrayList<>();
        for (String name : names) if (((Map<?, ?>) value).get(name) != null) list.add(((Map<?, ?>) value).get(name));
        return list;
    }
}
