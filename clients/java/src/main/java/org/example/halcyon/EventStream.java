package org.example.halcyon;

import java.io.EOFException;
import java.net.http.HttpResponse;
import java.net.http.HttpTimeoutException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;

/**
 * An event stream that resumes after the last message when its connection is lost, without missing or repeating events. One thread reads it; any thread
 * may close it.
 *
 * <pre>{@code
 * try (EventStream events = halcyon.events(EventFilter.ALL.types(Event.Type.READY))) {
 *     for (Message message = events.next(); message != null; message = events.next()) {
 *         System.out.println(message.event());
 *     }
 * }
 * }</pre>
 */
public final class EventStream implements AutoCloseable {
    private final AsyncHalcyon client;
    private final EventFilter filter;
    private final Backoff backoff;
    private EventParser parser;
    private String cursor;
    private volatile EventBody body;
    private volatile boolean isClosed;

    EventStream(AsyncHalcyon client, EventFilter filter, String cursor) {
        this.client = client;
        this.filter = filter;
        this.cursor = cursor;
        parser = new EventParser(cursor, client.settings.maximumEventBytes());
        backoff = new Backoff(Duration.ofSeconds(2), client.settings.maximumBackoff());
    }

    /** Connects and waits for the current position of the stream. */
    void start() throws InterruptedException {
        long deadline = System.nanoTime() + client.settings.retryTimeout().toNanos();
        while (parser.cursor().isEmpty()) {
            try {
                receive();
            } catch (HalcyonException error) {
                Duration pause = pauseAfter(error);
                if (System.nanoTime() + pause.toNanos() - deadline >= 0) throw error;
                Thread.sleep(pause.toMillis());
            }
        }
        cursor = parser.cursor();
    }

    /**
     * Waits for the next message. Returns null when the stream was closed.
     *
     * @throws HalcyonException for an error that a new connection does not mend, such as a wrong key
     */
    public Message next() throws InterruptedException {
        while (!isClosed) {
            Message message = parser.messages().poll();
            if (message != null) {
                cursor = message.cursor();
                return message;
            }
            cursor = parser.cursor();
            try {
                receive();
            } catch (HalcyonException error) {
                if (isClosed) return null;
                Thread.sleep(pauseAfter(error).toMillis());
            }
        }
        return null;
    }

    /** The position of the stream, at which another one can resume. It is at or after that of the last message. */
    public String cursor() {
        return cursor;
    }

    /** Ends the stream. A waiting {@link #next} returns null. */
    @Override
    public void close() {
        isClosed = true;
        EventBody current = body;
        if (current != null) current.cancel();
    }

    /** Reads the next part of the response, of a new one if necessary. */
    private void receive() throws InterruptedException {
        if (body == null) connect();
        EventBody.Part part = body.take(client.settings.readTimeout());
        if (part == null) throw new ConnectionException(new HttpTimeoutException("nothing was received for " + client.settings.readTimeout()));
        if (part.bytes() == null) throw new ConnectionException(part.error() == null ? new EOFException("the stream has ended") : part.error());
        backoff.reset();
        parser.consume(part.bytes());
        if (parser.retry() != null) backoff.setBase(parser.retry());
    }

    private void connect() throws InterruptedException {
        HttpResponse<EventBody> response = Halcyon.await(Operation.map(client.openEvents(filter, parser.cursor()), each -> each));
        body = response.body();
        if (isClosed) body.cancel();
        String type = response.headers().firstValue("Content-Type").orElse("nothing");
        if (response.statusCode() == 200 && type.startsWith("text/event-stream")) return;
        if (response.statusCode() < 400) throw new InvalidResponseException("expected an event stream, got " + type, null);
        StringBuilder text = new StringBuilder();
        EventBody.Part part = body.take(client.settings.readTimeout());
        while (part != null && part.bytes() != null && text.length() < 1 << 20) {
            text.append(new String(part.bytes(), StandardCharsets.UTF_8));
            part = body.take(client.settings.readTimeout());
        }
        throw ProblemException.of(response.statusCode(), text.toString(), response.headers().firstValue("Retry-After").orElse(null));
    }

    /** The pause before the next connection. An incomplete event is dropped, because it will be sent again. */
    private Duration pauseAfter(HalcyonException error) {
        if (body != null) body.cancel();
        body = null;
        if (!error.isTransient()) throw error;
        EventParser next = new EventParser(parser.cursor(), client.settings.maximumEventBytes());
        next.messages().addAll(parser.messages());
        parser = next;
        return backoff.next(error);
    }
}
