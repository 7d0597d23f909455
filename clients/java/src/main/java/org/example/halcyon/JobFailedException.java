package org.example.halcyon;

/** A job failed. */
public final class JobFailedException extends HalcyonException {
    private static final long serialVersionUID = 1;

    private final String id;
    private final transient Event.Failed failure;
    private final FailureCode code;
    private final boolean retryable;

    JobFailedException(String id, Event.Failed failure) {
        super(failure.codeName() + ": " + failure.message(), null);
        this.id = id;
        this.failure = failure;
        code = failure.code();
        retryable = failure.retryable();
    }

    /** The id of the job. */
    public String id() {
        return id;
    }

    /** The reason. */
    public FailureCode code() {
        return code;
    }

    /** The content of the event of the job; null after deserialization. */
    public Event.Failed failure() {
        return failure;
    }

    @Override
    public boolean isTransient() {
        return retryable;
    }
}
