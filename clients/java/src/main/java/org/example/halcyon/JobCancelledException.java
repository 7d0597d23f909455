package org.example.halcyon;

/** A job was cancelled before it ended. */
public final class JobCancelledException extends HalcyonException {
    private static final long serialVersionUID = 1;

    private final String id;

    JobCancelledException(String id) {
        super("job " + id + " was cancelled", null);
        this.id = id;
    }

    /** The id of the job. */
    public String id() {
        return id;
    }
}
