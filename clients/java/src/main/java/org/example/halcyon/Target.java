package org.example.halcyon;

import java.nio.charset.StandardCharsets;

/** The path and the query of a request, percent-encoded. */
final class Target {
    private static final String UNRESERVED = "-._~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

    private final StringBuilder text = new StringBuilder("/v1");
    private char separator = '?';

    /** The path of these segments below /v1. */
    static Target of(String... segments) {
        Target target = new Target();
        for (String segment : segments) target.text.append('/').append(encode(segment, ""));
        return target;
    }

    /** Adds a parameter, unless it is null. */
    Target with(String name, Object value) {
        if (value == null) return this;
        text.append(separator).append(name).append('=').append(encode(value.toString(), ""));
        separator = '&';
        return this;
    }

    @Override
    public String toString() {
        return text.toString();
    }

    /** Percent-encodes everything but the unreserved characters of RFC 3986 and some others. */
    static String encode(String text, String others) {
        return encode(text.getBytes(StandardCharsets.UTF_8), others);
    }

    static String encode(byte[] bytes, String others) {
        StringBuilder encoded = new StringBuilder();
        for (byte each : bytes) {
            if (each > 0 && (UNRESERVED.indexOf(each) >= 0 || others.indexOf(each) >= 0)) encoded.append((char) each);
            else encoded.append(String.format("%%%02X", each));
        }
        return encoded.toString();
    }
}
