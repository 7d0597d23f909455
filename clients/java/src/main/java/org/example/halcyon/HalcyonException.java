package org.example.halcyon;

/** An error of a client: one of the subclasses. */
public abstract sealed class HalcyonException extends RuntimeException
    permits ProblemException, JobFailedException, JobCancelledException, JobSupersededException, JobTimeoutException, ConnectionException,
        InvalidResponseException, ResponseTooLargeException, NotDeliveredException {
    private static final long serialVersionUID = 1;

    HalcyonException(String message, Throwable cause) {
        super(message, cause);
    }

    /** True if the same request or job may succeed later. */
    public boolean isTransient() {
        return false;
    }
}
