package org.example.halcyon;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Queue;

/** A parser for event streams (HTML Living Standard, 9.2.6): bytes in, messages out. */
final class EventParser {
    private final long limit;
    private final ByteArrayOutputStream line = new ByteArrayOutputStream();
    private final Queue<Message> messages = new ArrayDeque<>();
    private StringBuilder data;
    private String name = "";
    private String id;
    private boolean skipsLineFeed;
    private String cursor;
    private Duration retry;

    EventParser(String cursor, long limit) {
        this.cursor = cursor;
        this.limit = limit;
        id = cursor;
    }

    /** The id of the last complete event, after which the stream can be resumed. */
    String cursor() {
        return cursor;
    }

    /** The pause before a reconnection, if the stream has set it, or null. */
    Duration retry() {
        return retry;
    }

    /** The complete messages. */
    Queue<Message> messages() {
        return messages;
    }

    void consume(byte[] bytes) {
        for (byte each : bytes) {
            if (each == '\n' && skipsLineFeed) {
                skipsLineFeed = false;
                continue;
            }
            skipsLineFeed = each == '\r';
            if (each != '\n' && each != '\r') {
                line.write(each);
                if (line.size() + (data == null ? 0 : data.length()) > limit) throw new ResponseTooLargeException(limit);
                continue;
            }
            endLine(line.toString(StandardCharsets.UTF_8));
            line.reset();
        }
    }

    private void endLine(String text) {
        if (text.isEmpty()) {
            cursor = id;
            if (data != null) messages.add(message());
            data = null;
            name = "";
            return;
        }
        int colon = text.indexOf(':');
        String field = colon < 0 ? text : text.substring(0, colon), value = colon < 0 ? "" : text.substring(colon + 1);
        if (value.startsWith(" ")) value = value.substring(1);
        switch (field) {
            case "event" -> name = value;
            case "data" -> data = data == null ? new StringBuilder(value) : data.append('\n').append(value);
            case "id" -> id = value.indexOf('\0') < 0 ? value : id;
            case "retry" -> retry = value.matches("[0-9]{1,9}") ? Duration.ofMillis(Long.parseLong(value)) : retry;
            default -> { }
        }
    }

    private Message message() {
        if (!name.equals("gap")) return new Message(Event.parse(data.toString()), null, cursor);
        String reason;
        try {
            reason = Json.parseObject(data.toString()).get("reason") instanceof String text ? text : data.toString();
        } catch (IllegalArgumentException notJson) {
            reason = data.toString();
        }
        return new Message(null, reason, cursor);
    }
}
