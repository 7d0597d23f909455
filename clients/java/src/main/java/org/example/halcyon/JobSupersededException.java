package org.example.halcyon;

/** A job was superseded by one of a higher generation for the same slot. */
public final class JobSupersededException extends HalcyonException {
    private static final long serialVersionUID = 1;

    private final String id;
    private final long generation;

    JobSupersededException(String id, long generation) {
        super("job " + id + " was superseded by generation " + generation, null);
        this.id = id;
        this.generation = generation;
    }

    /** The id of the job. */
    public String id() {
        return id;
    }

    /** The generation of the other job. */
    public long generation() {
        return generation;
    }
}
