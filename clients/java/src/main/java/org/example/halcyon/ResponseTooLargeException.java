package org.example.halcyon;

/** A response or an event exceeds the limits of the client. */
public final class ResponseTooLargeException extends HalcyonException {
    private static final long serialVersionUID = 1;

    ResponseTooLargeException(long limit) {
        super("response is larger than " + limit + " bytes", null);
    }
}
