package org.example.halcyon;

import java.util.Locale;

/** The reason for the failure of a job. */
public enum FailureCode {
    /** The message is not a valid job. */
    INVALID_JOB,
    /** The kind of source is not supported. */
    UNSUPPORTED_SOURCE,
    /** The host of the source has an address that is not allowed. */
    BLOCKED_ADDRESS,
    /** 404, or no such file or object. */
    NOT_FOUND,
    /** 410. */
    GONE,
    /** 401, 403 or 451, or a file outside of the permitted folders. */
    FORBIDDEN,
    /** Any other error status, or a broken HTTP exchange. */
    HTTP_ERROR,
    /** The host name has no address. */
    DNS_ERROR,
    /** The connection to the host failed. */
    CONNECT_ERROR,
    /** Too many requests to the host failed before. */
    ORIGIN_UNAVAILABLE,
    /** The TLS handshake failed, or the certificate is not trusted. */
    TLS_ERROR,
    /** A time limit was exceeded. */
    TIMEOUT,
    /** There were more redirects than allowed. */
    TOO_MANY_REDIRECTS,
    /** The source has more bytes than allowed. */
    TOO_LARGE,
    /** The source or the output has more pixels than allowed. */
    TOO_MANY_PIXELS,
    /** The bytes are not an image in a supported format. */
    UNSUPPORTED_FORMAT,
    /** The image is damaged. */
    CORRUPT_IMAGE,
    /** The deadline has passed. */
    EXPIRED,
    /** A provider other than HTTP failed. */
    PROVIDER_ERROR,
    /** The job crashed or hung workers. */
    POISON,
    /** A defect of Halcyon, or a problem of the machine. */
    INTERNAL,
    /** A code of a later version. */
    UNKNOWN;

    /** The code in events, such as not_found. */
    public String code() {
        return name().toLowerCase(Locale.ROOT);
    }

    /** The constant of a code in events. */
    static FailureCode of(String code) {
        for (FailureCode each : values()) if (each.code().equals(code)) return each;
        return UNKNOWN;
    }
}
