package org.example.halcyon;

/** A response that this version does not understand. */
public final class InvalidResponseException extends HalcyonException {
    private static final long serialVersionUID = 1;

    InvalidResponseException(String reason, Throwable cause) {
        super("invalid response: " + reason, cause);
    }
}
