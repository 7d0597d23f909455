package org.example.halcyon;

import java.time.DateTimeException;
import java.time.Duration;
import java.time.Instant;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.util.Locale;
import java.util.Map;

/** A gateway refused a request (RFC 9457). */
public final class ProblemException extends HalcyonException {
    private static final long serialVersionUID = 1;

    private final Kind kind;
    private final int status;
    private final String title;
    private final String detail;
    private final FailureCode code;
    private final Duration retryAfter;

    private ProblemException(Kind kind, int status, String title, String detail, FailureCode code, Duration retryAfter) {
        super(title + " (" + status + "): " + detail, null);
        this.kind = kind;
        this.status = status;
        this.title = title;
        this.detail = detail;
        this.code = code;
        this.retryAfter = retryAfter;
    }

    /** Reads the body of an error response, whatever it is: that of a proxy has the status alone. */
    static ProblemException of(int status, String body, String retryAfter) {
        Map<String, Object> said;
        try {
            said = Json.parseObject(body);
        } catch (IllegalArgumentException notJson) {
            said = Map.of();
        }
        return of(status, said, retryAfter);
    }

    static ProblemException of(int status, Map<String, Object> said, String retryAfter) {
        String type = text(said, "type", "");
        String code = text(said, "code", null);
        int given = said.get("status") instanceof Number number ? number.intValue() : 0;
        return new ProblemException(
            Kind.of(type.substring(type.lastIndexOf('/') + 1)), status == 0 ? given : status, text(said, "title", "HTTP status"),
            text(said, "detail", "the response has no details"), code == null ? null : FailureCode.of(code), duration(retryAfter));
    }

    private static String text(Map<String, Object> said, String name, String standard) {
        return said.get(name) instanceof String text ? text : standard;
    }

    /** The header Retry-After: seconds or a date. */
    private static Duration duration(String retryAfter) {
        if (retryAfter == null) return Duration.ZERO;
        if (retryAfter.matches("[0-9]{1,5}")) return Duration.ofSeconds(Long.parseLong(retryAfter));
        try {
            Duration duration = Duration.between(Instant.now(), ZonedDateTime.parse(retryAfter, DateTimeFormatter.RFC_1123_DATE_TIME).toInstant());
            return duration.isNegative() ? Duration.ZERO : duration;
        } catch (DateTimeException invalid) {
            return Duration.ZERO;
        }
    }

    /** The kind of problem. */
    public Kind kind() {
        return kind;
    }

    /** The HTTP status. */
    public int status() {
        return status;
    }

    /** A summary, the same for all problems of this kind. */
    public String title() {
        return title;
    }

    /** A description of this problem for people. */
    public String detail() {
        return detail;
    }

    /** The failure code of an invalid or failed job; null for other problems. */
    public FailureCode code() {
        return code;
    }

    /** The time after which a retry makes sense; zero if the gateway gave none. */
    public Duration retryAfter() {
        return retryAfter;
    }

    @Override
    public boolean isTransient() {
        // A proxy that found no gateway answers 502 too. A rendering whose origin failed is final.
        return status == 408 || status == 429 || status == 503 || status == 504 || status == 502 && kind != Kind.BAD_ORIGIN;
    }

    /** The kinds of problems. UNKNOWN is one of a later version, BLANK that of a response without a kind. */
    public enum Kind {
        BAD_REQUEST, INVALID_JOB, UNAUTHORIZED, FORBIDDEN, NOT_FOUND, METHOD_NOT_ALLOWED, NOT_ACCEPTABLE, CONFLICT, GONE, PRECONDITION_FAILED,
        TOO_LARGE, UNSUPPORTED_MEDIA_TYPE, RANGE_NOT_SATISFIABLE, MISDIRECTED, UNPROCESSABLE_IMAGE, TOO_MANY_REQUESTS, BAD_ORIGIN, UNAVAILABLE,
        TIMEOUT, UNKNOWN, BLANK;

        private static Kind of(String name) {
            if (name.isEmpty()) return BLANK;
            for (Kind each : values()) if (each.name().toLowerCase(Locale.ROOT).replace('_', '-').equals(name)) return each;
            return UNKNOWN;
        }
    }
}
