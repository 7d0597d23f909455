import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.awt.image.BufferedImage;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.lang.reflect.RecordComponent;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicReference;
import javax.imageio.ImageIO;
import org.example.halcyon.AcceptedJob;
import org.example.halcyon.Batch;
import org.example.halcyon.BatchFailure;
import org.example.halcyon.BatchOptions;
import org.example.halcyon.BatchSubmission;
import org.example.halcyon.Event;
import org.example.halcyon.EventFilter;
import org.example.halcyon.EventStream;
import org.example.halcyon.FailureCode;
import org.example.halcyon.Halcyon;
import org.example.halcyon.HalcyonException;
import org.example.halcyon.Image;
import org.example.halcyon.Info;
import org.example.halcyon.InvalidResponseException;
import org.example.halcyon.Job;
import org.example.halcyon.JobCancelledException;
import org.example.halcyon.JobFailedException;
import org.example.halcyon.JobTimeoutException;
import org.example.halcyon.Message;
import org.example.halcyon.NotDeliveredException;
import org.example.halcyon.Output;
import org.example.halcyon.OutputFields.ContentMode;
import org.example.halcyon.OutputFields.Format;
import org.example.halcyon.OutputFields.Gravity;
import org.example.halcyon.OutputFields.Interpolation;
import org.example.halcyon.OutputFields.ScaleOptions;
import org.example.halcyon.OutputFields.Sizer;
import org.example.halcyon.OutputFields.Tolerance;
import org.example.halcyon.Preset;
import org.example.halcyon.ProblemException;
import org.example.halcyon.ProblemException.Kind;
import org.example.halcyon.Processor;
import org.example.halcyon.Processor.Radius;
import org.example.halcyon.RerenderOptions;
import org.example.halcyon.ResultKeys;
import org.example.halcyon.Source;
import org.example.halcyon.Submission;
import org.example.halcyon.UrlSigner;

/**
 * Checks the package against a gateway: each behavior of clients/conformance/behaviors.json, which also describes the environment. Prints one JSON object
 * for each, and exits with 1 if one failed.
 */
final class Conformance {
    private static final String GATEWAY = System.getenv("HALCYON_URL"), KEY = System.getenv("HALCYON_KEY"), SOURCES = System.getenv("HALCYON_SOURCES");
    private static final String RUN = "java-" + Long.toHexString(System.nanoTime());
    private static final String NO_KEY = "halcyon:{" + "0".repeat(32) + "}:" + "0".repeat(32);
    private static final Halcyon HALCYON = Halcyon.builder(GATEWAY).key(KEY).build();
    private static final HttpClient HTTP = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    private static int unique;

    /** A check, which throws if it fails. */
    private interface Check {
        void run() throws Exception;
    }

    public static void main(String[] arguments) {
        Map<String, Check> checks = new LinkedHashMap<>();
        checks.put("submit", Conformance::submit);
        checks.put("wait", Conformance::waitForJob);
        checks.put("submitAndWait", Conformance::submitAndWait);
        checks.put("failureCodes", Conformance::failureCodes);
        checks.put("invalidJob", Conformance::invalidJob);
        checks.put("retryWithBackoff", Conformance::retryWithBackoff);
        checks.put("timeout", Conformance::timeout);
        checks.put("cancelWait", Conformance::cancelWait);
        checks.put("cancelJob", Conformance::cancelJob);
        checks.put("subscribe", Conformance::subscribe);
        checks.put("subscribeResume", Conformance::subscribeResume);
        checks.put("brokenResponse", Conformance::brokenResponse);
        checks.put("info", Conformance::info);
        checks.put("infoMembers", Conformance::infoMembers);
        checks.put("fetchStored", Conformance::fetchStored);
        checks.put("fetchInline", Conformance::fetchInline);
        checks.put("fetchOneRead", Conformance::fetchOneRead);
        checks.put("fetchStoreURL", Conformance::fetchStoreURL);
        checks.put("fetchPut", Conformance::fetchPut);
        checks.put("batchOfJobs", Conformance::batchOfJobs);
        checks.put("batchOfTemplate", Conformance::batchOfTemplate);
        checks.put("batchFailures", Conformance::batchFailures);
        checks.put("batchCancel", Conformance::batchCancel);
        checks.put("batchRetry", Conformance::batchRetry);
        checks.put("presetPut", Conformance::presetPut);
        checks.put("presetJob", Conformance::presetJob);
        checks.put("rerender", Conformance::rerender);
        checks.put("signedURL", Conformance::signedURL);
        checks.put("resultKeys", Conformance::resultKeys);
        checks.put("kafkaJob", Conformance::kafkaJob);
        checks.put("unauthorized", Conformance::unauthorized);
        boolean passes = true;
        for (Map.Entry<String, Check> each : checks.entrySet()) {
            String detail = attempt(each.getValue());
            passes &= detail.isEmpty();
            // Text in JSON: the form of a job quotes it.
            String quoted = Job.template().with("detail", detail).toJson();
            System.out.println("{\"behavior\":\"" + each.getKey() + "\",\"ok\":" + detail.isEmpty() + "," + quoted.substring(1));
        }
        System.exit(passes ? 0 : 1);
    }

    /** Runs a check for at most five minutes, and returns the reason for its failure. */
    private static String attempt(Check check) {
        AtomicReference<Throwable> failure = new AtomicReference<>();
        Thread thread = new Thread(() -> {
            try {
                check.run();
            } catch (Throwable error) {
                failure.set(error);
            }
        });
        thread.start();
        try {
            thread.join(300_000);
            if (thread.isAlive()) {
                thread.interrupt();
                thread.join(5_000);
                return "timed out";
            }
        } catch (InterruptedException interruption) {
            return "interrupted";
        }
        if (failure.get() == null) return "";
        StackTraceElement place = Arrays.stream(failure.get().getStackTrace())
            .filter(each -> each.getClassName().equals("Conformance") && !List.of("expect", "equal", "expectThrows").contains(each.getMethodName())).findFirst().orElse(null);
        return failure.get() + " at " + place;
    }

    static void submit() throws Exception {
        Job job = photograph("coffee.jpg", 40).id(name("submit")).priority(Job.Priority.HIGH).with("widht", 3);
        for (int i = 0; i < 2; i++)
            equal(HALCYON.submit(job), new AcceptedJob(job.id(), "high", ResultKeys.of(job).keys(), List.of("widht")));
        List<Submission> several = HALCYON.submit(List.of(photograph("coffee.jpg", 41), photograph("coffee.jpg", -1)));
        expect(!several.get(0).accepted().id().isEmpty(), several);
        equal(several.get(1).problem().kind(), Kind.INVALID_JOB);
    }

    static void waitForJob() throws Exception {
        Job job = Job.of(SOURCES + "/coffee.jpg").metadata(Map.of("n", 17))
            .variants(Output.of().width(60).height(40), Output.named("small").width(30).height(30).format(Format.PNG));
        Event.Ready ready = HALCYON.waitFor(HALCYON.submit(job).id());
        equal(ready.variants().size(), 2);
        equal(ready.job().metadata(), Map.of("n", 17L));
        equal(ready.variants().get(0).format(), "jpeg");
        equal(ready.variants().get(1).name(), "small");
        int[] widths = {60, 30};
        for (int i = 0; i < 2; i++) equal(verify(ready.variants().get(i), HALCYON.imageData(ready.variants().get(i))), widths[i]);
    }

    static void submitAndWait() throws Exception {
        Job job = photograph("chelsea.jpg", 120).height(90);
        Image image = HALCYON.image(job);
        equal(verify(image), 120);
        equal(image.variant().height(), 90);
        List<Image> images = HALCYON.async().images(job.variants(Output.of().width(31), Output.of().width(32).format(Format.PNG))).get();
        for (int i = 0; i < 2; i++) equal(verify(images.get(i)), 31 + i);
    }

    static void failureCodes() throws Exception {
        Map<String, FailureCode> expected = Map.of(
            "none.jpg", FailureCode.NOT_FOUND, "gone.jpg", FailureCode.GONE, "forbidden.jpg", FailureCode.FORBIDDEN, "error.jpg",
            FailureCode.HTTP_ERROR, "corrupt.jpg", FailureCode.CORRUPT_IMAGE, "text.jpg", FailureCode.UNSUPPORTED_FORMAT);
        for (Map.Entry<String, FailureCode> each : expected.entrySet()) {
            Job job = photograph(each.getKey(), 40).id(name(each.getKey()));
            JobFailedException failure = expectThrows(JobFailedException.class, () -> HALCYON.submitAndWait(job));
            equal(failure.code(), each.getValue());
            equal(failure.id(), job.id());
            equal(failure.isTransient(), each.getValue() == FailureCode.HTTP_ERROR);
            expect(!failure.failure().message().isEmpty() && failure.failure().attempts() == 1, failure);
        }
        Check unsupported = () -> HALCYON.submitAndWait(Job.of("nothing:17"));
        HalcyonException error = expectThrows(HalcyonException.class, unsupported);
        FailureCode code = error instanceof ProblemException problem ? problem.code() : ((JobFailedException) error).code();
        equal(code, FailureCode.UNSUPPORTED_SOURCE);

        Map<String, Object> schema = json(Path.of(System.getenv("HALCYON_KEY_VECTORS")).resolveSibling("event.schema.json"));
        Object codes = ((Map<?, ?>) ((Map<?, ?>) schema.get("$defs")).get("code")).get("enum");
        equal(Arrays.stream(FailureCode.values()).filter(each -> each != FailureCode.UNKNOWN).map(FailureCode::code).toList(), codes);
    }

    static void invalidJob() {
        ProblemException problem = expectThrows(ProblemException.class, () -> HALCYON.submit(photograph("coffee.jpg", -1)));
        equal(List.of(problem.kind(), problem.status(), problem.code()), List.of(Kind.INVALID_JOB, 400, FailureCode.INVALID_JOB));
        expect(problem.detail().contains("width"), problem.detail());
    }

    /** A server that forwards requests to the gateway, unless the handler responds itself and returns true. It records their bodies. */
    private static final class Proxy implements AutoCloseable {
        interface Handler {
            boolean handle(int attempt, HttpExchange exchange) throws Exception;
        }

        final List<String> bodies = Collections.synchronizedList(new ArrayList<>());
        final List<Instant> times = Collections.synchronizedList(new ArrayList<>());
        private final HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);

        Proxy(Handler handler) throws IOException {
            server.setExecutor(Executors.newCachedThreadPool(task -> {
                Thread thread = new Thread(task);
                thread.setDaemon(true);
                return thread;
            }));
            server.createContext("/", exchange -> {
                times.add(Instant.now());
                String body = new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8);
                bodies.add(body);
                try {
                    if (!handler.handle(bodies.size(), exchange)) forward(exchange, body);
                } catch (Exception error) {
                    exchange.close();
                }
            });
            server.start();
        }

        static HttpResponse<InputStream> ask(HttpExchange exchange, String body) throws Exception {
            HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(GATEWAY + exchange.getRequestURI()))
                .method(exchange.getRequestMethod(), HttpRequest.BodyPublishers.ofString(body));
            for (String name : List.of("Authorization", "Content-Type", "Last-event-id", "Accept"))
                if (exchange.getRequestHeaders().getFirst(name) != null) request.header(name, exchange.getRequestHeaders().getFirst(name));
            return HTTP.send(request.build(), HttpResponse.BodyHandlers.ofInputStream());
        }

        private static void forward(HttpExchange exchange, String body) throws Exception {
            HttpResponse<InputStream> response = ask(exchange, body);
            response.headers().firstValue("Content-Type").ifPresent(type -> exchange.getResponseHeaders().set("Content-Type", type));
            exchange.sendResponseHeaders(response.statusCode(), 0);
            try (InputStream input = response.body(); OutputStream output = exchange.getResponseBody()) {
                byte[] part = new byte[8192];
                for (int count = input.read(part); count > 0; count = input.read(part)) {
                    output.write(part, 0, count);
                    output.flush();
                }
            }
        }

        Halcyon client(String key) {
            return Halcyon.builder("http://127.0.0.1:" + server.getAddress().getPort()).key(key).build();
        }

        @Override
        public void close() {
            server.stop(0);
        }
    }

    static void retryWithBackoff() throws Exception {
        Proxy.Handler handler = (attempt, exchange) -> {
            if (attempt == 1) {
                exchange.getResponseHeaders().set("Retry-After", "1");
                exchange.sendResponseHeaders(503, -1);
            } else if (attempt == 2) {
                exchange.close();
            }
            return attempt < 3;
        };
        try (Proxy flaky = new Proxy(handler)) {
            AcceptedJob accepted = flaky.client(KEY).submit(photograph("coffee.jpg", 42));
            equal(flaky.bodies, Collections.nCopies(3, flaky.bodies.get(0)));
            expect(flaky.bodies.get(0).contains(accepted.id()), "the id was not sent");
            Duration first = Duration.between(flaky.times.get(0), flaky.times.get(1)), second = Duration.between(flaky.times.get(1), flaky.times.get(2));
            expect(first.toMillis() >= 1000, "Retry-After was not honored: " + first);
            expect(second.toMillis() >= 200, "no back-off: " + second);
            HALCYON.waitFor(accepted.id());
            equal(problemOf(() -> flaky.client(KEY).submit(photograph("coffee.jpg", -1))), Kind.INVALID_JOB);
            equal(flaky.bodies.size(), 4);
        }
    }

    static void timeout() throws Exception {
        Halcyon hasty = Halcyon.builder(GATEWAY).key(KEY).jobTimeout(Duration.ofMillis(300)).build();
        String id = HALCYON.submit(hanging()).id();
        equal(expectThrows(JobTimeoutException.class, () -> hasty.waitFor(id)).id(), id);
        expect(!HALCYON.jobState(id).hasEnded(), "the wait has ended the job");
        HALCYON.cancelJob(id);

        Job job = hanging().id(name("timeout"));
        equal(expectThrows(JobTimeoutException.class, () -> hasty.submitAndWait(job)).id(), job.id());
        equal(expectThrows(JobCancelledException.class, () -> HALCYON.waitFor(job.id())).id(), job.id());
    }

    static void cancelWait() throws Exception {
        String id = HALCYON.submit(hanging()).id();
        CompletableFuture<Event.Ready> wait = HALCYON.async().waitFor(id);
        expectThrows(TimeoutException.class, () -> wait.get(300, TimeUnit.MILLISECONDS));
        wait.cancel(true);
        expectThrows(CancellationException.class, wait::get);
        expect(!HALCYON.jobState(id).hasEnded(), "the wait has ended the job");
        HALCYON.cancelJob(id);

        Job cancelled = hanging().id(name("cancelled"));
        // A job that is cancelled before its submission has begun would not exist.
        try (EventStream starts = starts(cancelled)) {
            CompletableFuture<Image> image = HALCYON.async().image(cancelled);
            next(starts);
            image.cancel(true);
        }
        expectThrows(JobCancelledException.class, () -> HALCYON.waitFor(cancelled.id()));

        Job interrupted = hanging().id(name("interrupted"));
        AtomicReference<Throwable> outcome = new AtomicReference<>();
        Thread thread = new Thread(() -> {
            try {
                HALCYON.submitAndWait(interrupted);
            } catch (InterruptedException | RuntimeException error) {
                outcome.set(error);
            }
        });
        try (EventStream starts = starts(interrupted)) {
            thread.start();
            next(starts);
        }
        thread.interrupt();
        thread.join(20_000);
        expect(outcome.get() instanceof InterruptedException, outcome.get());
        expectThrows(JobCancelledException.class, () -> HALCYON.waitFor(interrupted.id()));
    }

    /** Follows the start of a job, which is submitted afterwards. */
    private static EventStream starts(Job job) throws InterruptedException {
        return HALCYON.events(EventFilter.ALL.types(Event.Type.STARTED).jobs(job.id()));
    }

    static void cancelJob() throws Exception {
        String id = HALCYON.submit(hanging()).id();
        HALCYON.cancelJob(id);
        expectThrows(JobCancelledException.class, () -> HALCYON.waitFor(id));
        String ended = HALCYON.submitAndWait(photograph("coffee.jpg", 40)).job().id();
        // The gateway answers waiting clients before it stores the end of the job.
        Instant deadline = Instant.now().plusSeconds(60);
        while (true) {
            try {
                HALCYON.cancelJob(ended);
                expect(Instant.now().isBefore(deadline), "a job that has ended is cancelled");
                Thread.sleep(50);
            } catch (ProblemException problem) {
                equal(problem.kind(), Kind.CONFLICT);
                return;
            }
        }
    }

    static void subscribe() throws Exception {
        String first = name("first"), other = name("other"), last = name("last");
        EventFilter filter = EventFilter.ALL.types(Event.Type.STARTED, Event.Type.READY).jobs(first, last);
        try (EventStream events = HALCYON.events(filter)) {
            for (String id : List.of(first, other, last)) HALCYON.submitAndWait(fresh("rocket.jpg", 50).id(id));
            for (String id : List.of(first, last)) {
                Event started = next(events), ready = next(events);
                expect(started.data() instanceof Event.Started && started.job().id().equals(id), started);
                expect(ready.data() instanceof Event.Ready content && ready.job().id().equals(id) && content.variants().get(0).width() == 50, ready);
                expect(Duration.between(ready.time(), Instant.now()).abs().toMinutes() < 10, ready.time());
            }
        }
        EventStream ending = HALCYON.events(EventFilter.ALL.jobs("none"));
        CompletableFuture.delayedExecutor(100, TimeUnit.MILLISECONDS).execute(ending::close);
        equal(ending.next(), null);
    }

    private static Event next(EventStream events) throws InterruptedException {
        Message message = events.next();
        expect(message.gap() == null, message);
        return message.event();
    }

    static void subscribeResume() throws Exception {
        List<String> cursors = Collections.synchronizedList(new ArrayList<>());
        Proxy.Handler handler = (attempt, exchange) -> {
            cursors.add(String.valueOf(exchange.getRequestHeaders().getFirst("Last-Event-ID")));
            if (attempt > 2) return false;
            // Forwards one whole event, and half of the next one.
            HttpResponse<InputStream> response = Proxy.ask(exchange, "");
            exchange.getResponseHeaders().set("Content-Type", response.headers().firstValue("Content-Type").get());
            exchange.sendResponseHeaders(200, 0);
            StringBuilder text = new StringBuilder();
            while (text.toString().split("\ndata:", -1).length < 3) {
                int each = response.body().read();
                text.append((char) each);
                exchange.getResponseBody().write(each);
                exchange.getResponseBody().flush();
            }
            exchange.getResponseBody().write(" {\"specversion\"".getBytes(StandardCharsets.UTF_8));
            exchange.getResponseBody().flush();
            response.body().close();
            throw new IOException("break");
        };
        List<String> ids = List.of(0, 1, 2, 3, 4).stream().map(each -> name("resume-" + each)).toList();
        EventFilter filter = EventFilter.ALL.types(Event.Type.READY).jobs(ids.toArray(String[]::new));
        try (Proxy breaking = new Proxy(handler); EventStream events = breaking.client(KEY).events(filter)) {
            String start = events.cursor();
            for (String id : ids) HALCYON.submitAndWait(photograph("coffee.jpg", 43).id(id));
            List<String> seen = new ArrayList<>();
            for (int i = 0; i < ids.size(); i++) seen.add(next(events).job().id());
            equal(seen.stream().sorted().toList(), ids);
            equal(cursors.size(), 3);
            expect(cursors.get(0).equals("null") && !cursors.get(1).equals("null") && !cursors.get(2).equals(cursors.get(1)), cursors);
            // Another stream resumes at a cursor, also in another process.
            try (EventStream again = HALCYON.events(filter, start)) {
                expect(next(again).job().id().startsWith(RUN), "other events");
            }
        }
    }

    /** Broken responses with an image, and the ends of their connections. */
    private static final Map<String, List<String>> BROKEN = Map.of(
        "closed", List.of("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nim", "close"),
        "reset", List.of("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nim", "reset"),
        "silent", List.of("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nim", "silence"),
        "malformed", List.of("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nno size\r\n", "close"));

    /** A gateway that breaks the first response with each image, and the first two streams of three events. It answers one request on each connection. */
    private static final class BreakingGateway implements AutoCloseable {
        private final Map<String, Integer> attempts = new HashMap<>();
        private final ServerSocket server = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());

        BreakingGateway() throws IOException {
            start(() -> {
                while (true) {
                    Socket connection = server.accept();
                    start(() -> serve(connection));
                }
            });
        }

        /** Starts a thread, which ends with the first error of its connection. */
        private static void start(Check task) {
            Thread thread = new Thread(() -> {
                try {
                    task.run();
                } catch (Exception closed) {
                    // The client or the check has closed the connection.
                }
            });
            thread.setDaemon(true);
            thread.start();
        }

        private void serve(Socket connection) throws IOException {
            try (connection) {
                BufferedReader reader = new BufferedReader(new InputStreamReader(connection.getInputStream(), StandardCharsets.UTF_8));
                String path = "", cursor = "";
                for (String line = reader.readLine(); line != null && !line.isEmpty(); line = reader.readLine()) {
                    if (path.isEmpty()) path = line.split(" ")[1];
                    if (line.toLowerCase(Locale.ROOT).startsWith("last-event-id: ")) cursor = line.substring(15);
                }
                if (path.isEmpty()) return;
                List<String> answer = answer(path, cursor);
                connection.getOutputStream().write(answer.get(0).getBytes(StandardCharsets.UTF_8));
                if (answer.get(1).equals("reset")) connection.setSoLinger(true, 0);
                if (answer.get(1).equals("silence")) reader.read(); // Until the client closes the connection.
            }
        }

        private synchronized List<String> answer(String path, String cursor) {
            int attempt = attempts.merge(path, 1, Integer::sum);
            if (!path.equals("/v1/events")) {
                if (attempt == 1) return BROKEN.get(path.substring(path.lastIndexOf('/') + 1));
                return List.of("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nimage", "close");
            }
            StringBuilder text = new StringBuilder("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nretry: 1\n\n");
            int first = Integer.parseInt(cursor) + 1, last = attempt > 2 ? 3 : first;
            for (int id = first; id <= last; id++)
                text.append("id: ").append(id).append("\ndata: {\"id\": \"").append(id).append("\", \"type\": \"halcyon.image.started\", ")
                    .append("\"time\": \"2026-11-21T10:31:07Z\", \"data\": {\"job\": {\"id\": \"j\"}}}\n\n");
            if (attempt <= 2) text.append("id: 9\ndata: {\"id\"");
            return List.of(text.toString(), attempt == 2 ? "reset" : "silence");
        }

        Halcyon client() {
            return Halcyon.builder("http://127.0.0.1:" + server.getLocalPort()).readTimeout(Duration.ofMillis(250)).build();
        }

        @Override
        public void close() throws IOException {
            server.close();
        }
    }

    static void brokenResponse() throws Exception {
        try (BreakingGateway gateway = new BreakingGateway()) {
            Halcyon reader = gateway.client();
            for (String key : BROKEN.keySet()) equal(new String(reader.storedImage(key), StandardCharsets.UTF_8), "image");
            try (EventStream events = reader.events(EventFilter.ALL, "0")) {
                for (String cursor : List.of("1", "2", "3")) equal(events.next().cursor(), cursor);
            }
        }
    }

    static void info() throws Exception {
        Job job = Job.of(SOURCES + "/coffee.jpg").phash(true);
        Info facts = HALCYON.info(job);
        Event.Variant variant = HALCYON.submitAndWait(job.info(true)).variants().get(0);
        equal(variant.info(), facts);
        equal(List.of(facts.format(), facts.width(), facts.phash().length()), List.of("jpeg", variant.width(), 16));
        equal(HALCYON.info(Job.of(SOURCES + "/coffee.jpg").infoWithLocation()).location(), null);
        equal(List.of(facts.truncated(), facts.frames(), facts.palette()), List.of(false, 0, List.of()));
        equal(Arrays.asList(facts.loop(), facts.video()), Arrays.asList(null, null));
        equal(HALCYON.submitAndWait(photograph("coffee.jpg", 59)).variants().get(0).info(), null);
        equal(problemOf(() -> HALCYON.info(Job.of(SOURCES + "/none.jpg"))), Kind.NOT_FOUND);
    }

    static void infoMembers() throws Exception {
        String text = Files.readString(Path.of(System.getenv("HALCYON_INFO")));
        // Every object has a member of a later version.
        String answer = text.replace("{", "{\"later\": {}, ");
        Proxy.Handler handler = (attempt, exchange) -> {
            byte[] body = answer.getBytes(StandardCharsets.UTF_8);
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
            return true;
        };
        try (Proxy gateway = new Proxy(handler)) {
            Info facts = gateway.client(KEY).info(Job.of("initials:A"));
            equal(members(facts), members(json(text)));
            equal(facts.video(), new Info.VideoInfo("h264", 12500));
            equal(
                List.of(facts.exif().flash(), facts.exif().iso(), facts.location().longitude(), facts.faces().get(1).place().x()),
                List.of(true, 400.0, -13.25, 300));
            Event event = Event.parse(
                "{\"id\": \"1\", \"type\": \"halcyon.image.ready\", \"time\": \"2026-11-21T10:31:07Z\", \"data\": {\"job\": {\"id\": \"a\"}, \"variants\": ["
                    + "{\"key\": \"halcyon:{00}:01\", \"format\": \"json\", \"sha256\": \"00\", \"info\": " + answer + "}]}}");
            equal(event.result().variants().get(0).info(), facts);
        }
    }

    /** The members of a record, or of an object in JSON, that are not null. Numbers are those of JSON, without a type. */
    private static Object members(Object value) throws ReflectiveOperationException {
        Map<String, Object> members = new HashMap<>();
        if (value instanceof Number number) return number.doubleValue();
        if (value instanceof List<?> list) {
            List<Object> elements = new ArrayList<>();
            for (Object each : list) elements.add(members(each));
            return elements;
        }
        if (value instanceof Event.Face face) {
            Event.Rect place = face.place();
            members.putAll(Map.of("x", 1.0 * place.x(), "y", 1.0 * place.y(), "width", 1.0 * place.width(), "height", 1.0 * place.height()));
            members.put("confidence", face.confidence());
        } else if (value instanceof Record) {
            for (RecordComponent each : value.getClass().getRecordComponents()) {
                Object member = each.getAccessor().invoke(value);
                if (member != null) members.put(each.getName(), members(member));
            }
        } else if (value instanceof Map<?, ?> object) {
            for (Map.Entry<?, ?> each : object.entrySet()) members.put((String) each.getKey(), members(each.getValue()));
        } else {
            return value;
        }
        return members;
    }

    static void fetchStored() throws Exception {
        Event.Ready ready = HALCYON.submitAndWait(photograph("coffee.jpg", 60));
        equal(verify(ready.variants().get(0), HALCYON.storedImage(ready.key())), 60);
        equal(problemOf(() -> HALCYON.storedImage(NO_KEY)), Kind.NOT_FOUND);
        equal(verify(ready.variants().get(0), HALCYON.render(photograph("coffee.jpg", 60))), 60);
    }

    static void fetchInline() throws Exception {
        Event.Variant variant = HALCYON.submitAndWait(photograph("coffee.jpg", 61).delivery(Job.Delivery.INLINE)).variants().get(0);
        Halcyon unreachable = Halcyon.builder("http://127.0.0.1:1").retryTimeout(Duration.ZERO).build();
        equal(verify(variant, unreachable.imageData(variant)), 61);
    }

    static void fetchOneRead() throws Exception {
        Job job = photograph("no-store/coffee.jpg", 1200).height(900).format(Format.PNG).cache(Job.Cache.NONE);
        Event.Variant variant = HALCYON.submitAndWait(job).variants().get(0);
        expect(variant.data() == null && variant.key().contains(":handoff:"), variant.key() + " is no one-read key");
        equal(verify(variant, HALCYON.imageData(variant)), 1200);
        equal(problemOf(() -> HALCYON.imageData(variant)), Kind.NOT_FOUND);
    }

    static void fetchStoreURL() throws Exception {
        Event.Variant variant = HALCYON.submitAndWait(photograph("coffee.jpg", 62).cache(Job.Cache.DURABLE)).variants().get(0);
        expect(variant.url().startsWith(SOURCES + "/store/"), variant.url());
        equal(verify(variant, HALCYON.download(variant.url())), 62);
        // The first response of the store to each URL breaks.
        AtomicReference<String> location = new AtomicReference<>(variant.url() + "?broken=" + name("redirect"));
        Proxy.Handler redirect = (attempt, exchange) -> { // gateway.redirectsToStore
            exchange.getResponseHeaders().set("Location", location.get());
            exchange.sendResponseHeaders(302, -1);
            exchange.close();
            return true;
        };
        try (Proxy redirecting = new Proxy(redirect)) {
            equal(verify(variant, redirecting.client(KEY).imageData(variant)), 62);
            location.set("/v1/batches");
            expectThrows(InvalidResponseException.class, () -> redirecting.client(KEY).imageData(variant));
            equal(redirecting.bodies.size(), 3);
        }
        // The gateway no longer has the result.
        Event.Variant lost = new Event.Variant(
            NO_KEY, null, variant.width(), variant.height(), variant.format(), variant.bytes(), variant.sha256(), 0, null, null, null, List.of(), null,
            null, List.of(), null, null, null, variant.url() + "?broken=" + name("url"), null, null);
        equal(verify(lost, HALCYON.imageData(lost)), 62);
    }

    static void fetchPut() throws Exception {
        Job job = Job.of(SOURCES + "/coffee.jpg").variants(Output.named("a").width(63), Output.named("b").width(64)).cache(Job.Cache.NONE)
            .delivery(Job.Delivery.put(SOURCES + "/put/" + RUN + "/{variant}.{format}"));
        List<Event.Variant> variants = HALCYON.submitAndWait(job).variants();
        for (int i = 0; i < 2; i++) {
            equal(variants.get(i).put(), SOURCES + "/put/" + RUN + "/" + variants.get(i).name() + ".jpeg");
            equal(verify(variants.get(i), HALCYON.imageData(variants.get(i))), 63 + i);
        }
        List<Image> images = HALCYON.images(job.delivery(Job.Delivery.put(SOURCES + "/put/" + RUN + "/images/{variant}.{format}")));
        for (int i = 0; i < 2; i++) {
            equal(images.get(i).variant().put(), SOURCES + "/put/" + RUN + "/images/" + images.get(i).variant().name() + ".jpeg");
            equal(verify(images.get(i)), 63 + i);
        }
        String secret = SOURCES + "/put/" + RUN + "/secret?signature=5f3a";
        Job hidden = photograph("coffee.jpg", 69).cache(Job.Cache.NONE).delivery(Job.Delivery.put(secret));
        expectThrows(NotDeliveredException.class, () -> HALCYON.image(hidden));
        equal(HTTP.send(HttpRequest.newBuilder(URI.create(secret)).build(), HttpResponse.BodyHandlers.discarding()).statusCode(), 200);
    }

    static void batchOfJobs() throws Exception {
        List<Job> jobs = List.of(
            photograph("coffee.jpg", 65), photograph("coffee.jpg", 66), photograph("none.jpg", 66), photograph("coffee.jpg", -1));
        String id = name("batch");
        BatchSubmission submission = HALCYON.createBatch(jobs, BatchOptions.DEFAULT.id(id).priority(Job.Priority.LOW));
        equal(List.of(submission.id(), submission.accepted(), submission.rejected(), submission.problems().size()), List.of(id, 3, 1, 1));
        equal(submission.problems().get(0).line(), 4);
        equal(submission.problems().get(0).problem().code(), FailureCode.INVALID_JOB);
        Batch batch = HALCYON.waitForBatch(id);
        equal(List.of(batch.total(), batch.ended(), batch.counts()), List.of(3, 3, new Batch.Counts(2, 1, 0, 0)));
        expect(!batch.completedAt().isBefore(batch.createdAt()), batch);
        expect(HALCYON.batches(1000).stream().anyMatch(each -> each.id().equals(id)), "the batch is not listed");

        BatchOptions options = BatchOptions.DEFAULT.id(name("parts"));
        HALCYON.createBatch(jobs.subList(0, 1), options.part(0));
        equal(HALCYON.batch(options.id()).state(), "open");
        HALCYON.createBatch(jobs.subList(1, 2), options.part(1));
        HALCYON.closeBatch(options.id(), 2);
        equal(HALCYON.waitForBatch(options.id()).counts().ready(), 2);
        equal(problemOf(() -> HALCYON.batch(name("no-batch"))), Kind.NOT_FOUND);
    }

    static void batchOfTemplate() throws Exception {
        Job template = Job.template().width(67).format(Format.PNG);
        List<Source> images = List.of(Source.of(SOURCES + "/coffee.jpg"), Source.of(SOURCES + "/chelsea.jpg"));
        BatchSubmission submission = HALCYON.createBatch(template, images, BatchOptions.DEFAULT);
        equal(submission.accepted(), 2);
        equal(HALCYON.waitForBatch(submission.id()).counts().ready(), 2);
        equal(width(HALCYON.storedImage(ResultKeys.of(template.source(images.get(1))).keys().get(0))), 67);

        Batch batch = HALCYON.waitForBatch(HALCYON.createBatch(template, "s3://no-such-bucket/a/", BatchOptions.DEFAULT).id());
        equal(batch.prefix(), "s3://no-such-bucket/a/");
        equal(batch.error().code(), FailureCode.NOT_FOUND);
    }

    static void batchFailures() throws Exception {
        List<Job> jobs = List.of(
            photograph("none.jpg", 68), photograph("coffee.jpg", 68), photograph("gone.jpg", 68), photograph("none.jpg", 69));
        String id = HALCYON.createBatch(jobs, BatchOptions.DEFAULT).id();
        equal(HALCYON.waitForBatch(id).counts().failed(), 3);
        List<BatchFailure> failures = new ArrayList<>(HALCYON.batchFailures(id, 0, 2));
        equal(failures.size(), 2);
        failures.addAll(HALCYON.batchFailures(id, 2, 2));
        Map<Integer, FailureCode> codes = new HashMap<>();
        for (BatchFailure failure : failures) {
            codes.put(failure.index(), failure.code());
            equal(failure.job(), id + "-" + failure.index());
            expect(!failure.message().isEmpty() && !failure.record().isEmpty(), failure);
        }
        equal(codes, Map.of(0, FailureCode.NOT_FOUND, 2, FailureCode.GONE, 3, FailureCode.NOT_FOUND));
    }

    static void batchCancel() throws Exception {
        String id = HALCYON.createBatch(List.of(hanging(), hanging()), BatchOptions.DEFAULT).id();
        HALCYON.cancelBatch(id);
        Batch batch = HALCYON.waitForBatch(id);
        equal(batch.counts().cancelled(), 2);
        expect(batch.cancelledAt() != null, batch);
        equal(problemOf(() -> HALCYON.cancelBatch(id)), Kind.CONFLICT);
    }

    static void batchRetry() throws Exception {
        String late = "put/" + name("late.jpg");
        String id = HALCYON.createBatch(List.of(photograph(late, 70), photograph("coffee.jpg", 70)), BatchOptions.DEFAULT).id();
        equal(HALCYON.waitForBatch(id).counts().failed(), 1);
        HTTP.send(
            HttpRequest.newBuilder(URI.create(SOURCES + "/" + late))
                .PUT(HttpRequest.BodyPublishers.ofByteArray(HALCYON.download(SOURCES + "/coffee.jpg"))).build(),
            HttpResponse.BodyHandlers.discarding());
        BatchSubmission retry = HALCYON.retryBatch(id, BatchOptions.DEFAULT.id(name("retry")));
        equal(List.of(retry.id(), retry.accepted(), retry.missing()), List.of(name("retry"), 1, 0));
        equal(HALCYON.waitForBatch(retry.id()).counts(), new Batch.Counts(1, 0, 0, 0));
        equal(problemOf(() -> HALCYON.retryBatch(retry.id(), BatchOptions.DEFAULT)), Kind.CONFLICT);
    }

    /** Registers a preset whose results have a width. */
    private static Preset preset(String suffix, int width, String... overridable) throws InterruptedException {
        return HALCYON.putPreset(name(suffix), Job.template().width(width).format(Format.PNG).maxAge(3600), List.of(overridable));
    }

    static void presetPut() throws Exception {
        Preset put = preset("card", 71, "width");
        equal(List.of(put.name(), put.version(), put.origin(), put.overridable()), List.of(name("card"), 1L, "registered", List.of("width")));
        equal(preset("card", 71, "width").version(), 1L);
        equal(preset("card", 72).version(), 2L);
        equal(HALCYON.preset(put.name()).job().get("width"), 72L);
        expect(HALCYON.presets().stream().anyMatch(each -> each.name().equals(put.name()) && each.version() == 2), "the preset is not listed");
        HALCYON.deletePreset(put.name());
        equal(problemOf(() -> HALCYON.preset(put.name())), Kind.NOT_FOUND);
        equal(problemOf(() -> HALCYON.deletePreset(put.name())), Kind.NOT_FOUND);
    }

    static void presetJob() throws Exception {
        Preset put = preset("job", 73, "width");
        Job job = Job.of(SOURCES + "/coffee.jpg").preset(put.name());
        Image image = HALCYON.image(job);
        equal(List.of(verify(image), image.variant().format(), image.ready().job().preset()), List.of(73, "png", put.name()));
        equal(verify(HALCYON.image(job.preset(put.name(), put.version()).width(74))), 74);
        ProblemException problem = expectThrows(ProblemException.class, () -> HALCYON.submit(job.quality(50)));
        equal(problem.kind(), Kind.INVALID_JOB);
        expect(problem.detail().contains("quality"), problem.detail());
        HALCYON.deletePreset(put.name());
    }

    static void rerender() throws Exception {
        Preset put = preset("again", 75);
        unique++;
        Job job = Job.of(SOURCES + "/coffee.jpg?" + RUN + unique).preset(put.name());
        HALCYON.submitAndWait(job);
        // A worker may not have been told of the change yet, unless a job requires the new version.
        HALCYON.submitAndWait(Job.of(SOURCES + "/chelsea.jpg?" + RUN).preset(put.name(), preset("again", 76).version()).cache(Job.Cache.NONE));
        Batch batch = HALCYON.waitForBatch(HALCYON.rerender(put.name(), RerenderOptions.DEFAULT).id());
        equal(List.of(batch.counts(), batch.preset()), List.of(new Batch.Counts(1, 0, 0, 0), put.name()));
        equal(width(HALCYON.storedImage(ResultKeys.of(Job.of(job.source()).width(76).format(Format.PNG)).keys().get(0))), 76);
        HALCYON.deletePreset(put.name());
    }

    private static byte[] get(URI uri, int status) throws Exception {
        HttpResponse<InputStream> response = HTTP.send(HttpRequest.newBuilder(uri).build(), HttpResponse.BodyHandlers.ofInputStream());
        equal(response.statusCode(), status);
        try (InputStream body = response.body()) {
            return response.headers().firstValue("Content-Type").orElse("").startsWith("text/event-stream") ? null : body.readAllBytes();
        }
    }

    static void signedURL() throws Exception {
        String[] secret = System.getenv("HALCYON_SIGNING_KEY").split(":", 2);
        UrlSigner signer = new UrlSigner(secret[0], secret[1]);
        Instant soon = Instant.now().plusSeconds(60);
        Job job = photograph("coffee.jpg", 77);
        URI rendering = HALCYON.renderUri(job), signed = signer.sign(rendering, soon);
        get(rendering, 401);
        equal(width(get(signed, 200)), 77);
        get(URI.create(signed.toString().replace("width=77", "width=78")), 403);
        get(signer.sign(rendering, Instant.now().minusSeconds(2)), 403);
        get(new UrlSigner(secret[0], "0".repeat(32)).sign(rendering, soon), 403);
        equal(width(get(signer.sign(HALCYON.imageUri(ResultKeys.of(job).keys().get(0)), soon), 200)), 77);
        Preset put = preset("signed", 79);
        equal(width(get(signer.sign(HALCYON.renderUri(Job.of(SOURCES + "/coffee.jpg").preset(put.name())), soon), 200)), 79);
        HALCYON.deletePreset(put.name());
        URI events = HALCYON.eventsUri(EventFilter.ALL.types(Event.Type.READY));
        get(events, 401);
        get(signer.sign(events, soon), 200);
        Job all = job.cropRectInPixels(1, 2, 300, 200.5).gravity(Gravity.point(0.3, 0.7)).tags("a", "b").processors(Processor.BLACK_WHITE).height(50);
        equal(width(get(signer.sign(HALCYON.renderUri(all), soon), 200)), 77);
        expectThrows(IllegalArgumentException.class, () -> HALCYON.renderUri(job.id("a")));

        URI example = Halcyon.builder("https://images.example.org").build().renderUri(Job.of("https://example.org/cat.jpg").width(400));
        equal(
            new UrlSigner("1", "0123456789abcdef0123456789abcdef").sign(example, Instant.ofEpochSecond(1790000000)).toString(),
            "https://images.example.org/v1/render?source=https%3A%2F%2Fexample.org%2Fcat.jpg&width=400&keyId=1&expires=1790000000"
                + "&signature=fa2e1359ceb8e94b2c9b81f45da9ee7ad5487a0497cad0e391f2e397db998c14");
    }

    static void resultKeys() throws Exception {
        List<?> vectors = (List<?>) json(Path.of(System.getenv("HALCYON_KEY_VECTORS"))).get("vectors");
        expect(vectors.size() >= 209, vectors.size());
        for (Object each : vectors) {
            Map<?, ?> vector = (Map<?, ?>) each;
            Job job = Job.template();
            for (Map.Entry<?, ?> field : ((Map<?, ?>) vector.get("job")).entrySet()) job = job.with((String) field.getKey(), field.getValue());
            ResultKeys keys = ResultKeys.of(job);
            equal(List.of(keys.sourceText(), keys.variantTexts(), keys.keys()), List.of(vector.get("sourceText"), vector.get("variantTexts"), vector.get("keys")));
        }
        for (String invalid : List.of("{}", "{\"source\": 1}", "{\"source\": \"initials:A\", \"background\": \"reddish\"}", "{\"source\": \"data:;base64,???\"}"))
            expectThrows(IllegalArgumentException.class, () -> ResultKeys.of(invalid));
        Job job = photograph("coffee.jpg", 80).processors(Processor.roundCorner(Radius.points(8.5)).background("gold"), Processor.BLACK_WHITE);
        equal(HALCYON.submitAndWait(job).key(), ResultKeys.of(job).keys().get(0));
        // The margins around the letters are removed, and the event says what remained.
        Job letters = Job.of(Source.of("initials:JD")).trim(20, null, 0).before(Processor.BLACK_WHITE).format(Format.PNG);
        Event.Variant variant = HALCYON.submitAndWait(letters).variants().get(0);
        expect(variant.trim().x() > 0 && variant.trim().y() > 0, variant);
        equal(List.of(variant.trim().width(), variant.trim().height()), List.of(variant.width(), variant.height()));
        equal(variant.key(), ResultKeys.of(letters).keys().get(0));
    }

    /** The job of job.json. */
    private static final Job FULL = Job.of(Source.of("https://example.org/cat.jpg?size=large", "cat-7")).id("article-17-hero")
        .alternatives(
            Source.of("s3://pictures/cat.jpg"), Source.initials("JD", "#306ba6", "white"),
            Source.videoFrame(Source.of("https://example.org/cat.mp4"), 1.5))
        .noFallback().width(400).height(300).screenScale(2).contentMode(ContentMode.SCALE_ASPECT_FILL).scaleOptions(ScaleOptions.FILL_LEAVES_EXCESS)
        .position(ContentMode.TOP_LEFT).cropRect(0.5, 0, 0.5, 1).trim(20, "white", 0.01).sizeForDisplay(true).gravity(Gravity.point(0.3, 0.25)).upscale(false)
        .interpolationQuality(Interpolation.MEDIUM).linearLight(true).background("#ffffff").before(Processor.normalize(2, 98.5), Processor.rotate(3))
        .processors(
            Processor.roundCorner(Radius.points(12), ContentMode.TOP_LEFT, ContentMode.TOP_RIGHT).background("white"),
            Processor.resize(200, 100, "aspectFit"), Processor.crop(100, 80, 0.25, 0.75), Processor.blur(2.5), Processor.tint("#336699"),
            Processor.overlay("black", 0.3), Processor.overlay(Source.of("https://example.org/frame.png"), 0.8), Processor.blend("multiply", "red", 0.5),
            Processor.colorControls(0.1, 1.2, 0.9, 0.5), Processor.BLACK_WHITE, Processor.border(2, "navy", Radius.widthFraction(0.5)),
            Processor.downsample(90, 90), Processor.sharpen(0.7, 1.5), Processor.pixelate(8),
            Processor.watermark(Source.of("file:///srv/logo.png"), ContentMode.TOP_RIGHT, 4, 0.2, 0.6, false),
            Processor.rotate(90).background("transparent"), Processor.flip("both"),
            Processor.pad(1, 2, 3, 4).fill("color").color("gold"), Processor.pad(10).fill("mirror"),
            Processor.text("Größe\n50 \\ 100", "DejaVu Sans").bold().italic().size(24).box(180, 60).align("center").color("white")
                .outline(2, "#333333").opacity(0.9).position(ContentMode.BOTTOM).margin(8).offset(-3, 1.5),
            Processor.mask("heart"), Processor.mask(Source.of("https://example.org/mask.png")), Processor.hue(30), Processor.gamma(1.8),
            Processor.normalize(1, 99), Processor.duotone("navy", "gold"), Processor.blurFaces(0.5, 0.1, 0.4), Processor.pixelateFaces(6, 0.1, 0.4),
            Processor.overlay(Source.of("https://example.org/frame.png"), 1).mode("softLight"),
            Processor.watermark(Source.of("file:///srv/logo.png"), ContentMode.LEFT, 2, null, 1, true).scale(0.5).offset(5, -6).mode("luminosity"))
        .format(Format.WEBP).quality(80).lossless(false).effort(4).progressive(true).stripMetadata(false).keepProfile(true).page(2).frames(1)
        .maximumBytes(50000).allowResize(true).nearLossless(true).chromaSubsampling("4:4:4").bitDepth(8).quantize(16, 0.5).profile("srgb")
        .tolerance(Tolerance.TRUNCATED).blurhash(true).dominantColor(true).palette(true).thumbhash(true).phash(true).faces(true).infoWithLocation()
        .variants(
            Output.named("large").width(1600).format(Format.AVIF).trim(true), Output.named("small").sizer(Sizer.aspectScaleDownByWidth(400)).targetSimilarity(0.98).format(Format.BEST),
            Output.named("dot").gravity(Gravity.ATTENTION).cropRectInPixels(40, 30, 600, 400))
        .partial(true).maxAge(3600).cache(new Job.Cache(true, Job.StoreUse.REQUIRED, false, true, false)).tenant("shop-7")
        .headers(Map.of("Accept", "image/webp", "X-Client", "conformance")).tags("article-17", "hero").slot("article-17/hero")
        .generation(1795257067290L).delivery(Job.Delivery.put("https://bucket.example.org/items/7/{variant}.{format}")).priority(Job.Priority.HIGH)
        .prefetch(false).refreshBeforeExpiry().notBefore(Instant.parse("2026-11-21T10:31:07Z")).deadline(Duration.ofSeconds(30))
        .metadata(Map.of("article", 17)).placeholder("LEHV6nWB2yk8").altText("a cat").preset("card", 3).batch("catalogue-1", 0).webhook("shop");

    static void kafkaJob() throws Exception {
        Path file = Path.of(System.getenv("HALCYON_JOB"));
        Map<String, Object> want = json(file), got = json(FULL.toJson());
        for (String name : want.keySet()) equal(Map.of(name, got.get(name)), Map.of(name, want.get(name)));
        equal(got, want);
        Job copy = Job.template();
        for (Map.Entry<String, Object> field : want.entrySet()) copy = copy.with(field.getKey(), field.getValue());
        equal(copy, FULL);

        Job job = fresh("coffee.jpg", 81).id(name("kafka"));
        try (EventStream events = HALCYON.events(EventFilter.ALL.jobs(job.id()))) {
            Process producer = new ProcessBuilder("bash", "-c", System.getenv("HALCYON_PRODUCE")).redirectError(ProcessBuilder.Redirect.INHERIT).start();
            try (OutputStream input = producer.getOutputStream()) {
                input.write((job.toJson() + "\n").getBytes(StandardCharsets.UTF_8));
            }
            equal(producer.waitFor(), 0);
            Event event = next(events);
            while (!event.endsJob()) event = next(events);
            Event.Variant variant = event.result().variants().get(0);
            equal(verify(variant, HALCYON.imageData(variant)), 81);
        }
    }

    static void unauthorized() throws Exception {
        try (Proxy counting = new Proxy((attempt, exchange) -> false)) {
            int count = 0;
            for (String wrong : Arrays.asList(null, "wrong-key-0123456789")) {
                equal(problemOf(() -> counting.client(wrong).submit(photograph("coffee.jpg", 40))), Kind.UNAUTHORIZED);
                equal(problemOf(() -> counting.client(wrong).events(EventFilter.ALL)), Kind.UNAUTHORIZED);
                count += 2;
                equal(counting.bodies.size(), count);
            }
        }
    }

    // Jobs.

    private static String name(String suffix) {
        return RUN + "-" + suffix;
    }

    private static Job photograph(String path, int width) {
        return Job.of(SOURCES + "/" + path).width(width);
    }

    /** A job whose result is not stored yet. */
    private static Job fresh(String path, int width) {
        unique++;
        return photograph(path + "?" + RUN + unique, width);
    }

    /** A job whose source does not respond. */
    private static Job hanging() {
        unique++;
        return photograph("hang/" + RUN + unique, 40);
    }

    // Files.

    private static Map<String, Object> json(Path file) throws IOException {
        return json(Files.readString(file));
    }

    /** Parses JSON with the package: as the data of an event of an unknown type. */
    private static Map<String, Object> json(String text) {
        String event = "{\"id\": \"1\", \"type\": \"other\", \"time\": \"2026-11-21T10:31:07Z\", \"data\": " + text + "}";
        return ((Event.Other) Event.parse(event).data()).data();
    }

    private static int width(byte[] file) throws IOException {
        return ImageIO.read(new ByteArrayInputStream(file)).getWidth();
    }

    private static int verify(Image image) throws Exception {
        return verify(image.variant(), image.data());
    }

    /** Compares an image with its description, and returns its width. */
    private static int verify(Event.Variant variant, byte[] file) throws Exception {
        equal(HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(file)), variant.sha256());
        equal((long) file.length, variant.bytes());
        BufferedImage image = ImageIO.read(new ByteArrayInputStream(file));
        equal(List.of(image.getWidth(), image.getHeight()), List.of(variant.width(), variant.height()));
        boolean isPng = new String(file, 1, 3, StandardCharsets.ISO_8859_1).equals("PNG"), isJpeg = (file[0] & 255) == 0xff && (file[1] & 255) == 0xd8;
        equal(isPng ? "png" : isJpeg ? "jpeg" : "other", variant.format());
        return image.getWidth();
    }

    // Assertions.

    private static void expect(boolean condition, Object detail) {
        if (!condition) throw new AssertionError(detail);
    }

    private static void equal(Object got, Object want) {
        expect(Objects.equals(got, want), got + " is not " + want);
    }

    private static <T extends Throwable> T expectThrows(Class<T> type, Check check) {
        try {
            check.run();
        } catch (Throwable error) {
            expect(type.isInstance(error), error + " is not " + type);
            return type.cast(error);
        }
        throw new AssertionError("no " + type);
    }

    private static Kind problemOf(Check check) {
        return expectThrows(ProblemException.class, check).kind();
    }
}
