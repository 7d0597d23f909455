package org.example.halcyon;

/** A job did not end within {@link Halcyon.Builder#jobTimeout}. */
public final class JobTimeoutException extends HalcyonException {
    private static final long serialVersionUID = 1;

    private final String id;

    JobTimeoutException(String id) {
        super("job " + id + " did not end in time", null);
        this.id = id;
    }

    /** The id of the job. */
    public String id() {
        return id;
    }

    @Override
    public boolean isTransient() {
        return true;
    }
}
