package org.example.halcyon;

import java.time.Instant;

/**
 * The state of a batch.
 *
 * @param id the id
 * @param state open, listing, running, cancelling or completed
 * @param tenant the tenant of the request that created the batch, or null
 * @param createdAt the time of its creation
 * @param cancelledAt the time of its cancellation, or null
 * @param completedAt the time of its completion, or null
 * @param prefix the prefix of the objects of a bucket, or null
 * @param preset the preset whose results are made again, or null
 * @param submitted the number of jobs so far, in the state listing
 * @param total the number of jobs; null while jobs may be added
 * @param ended the number of jobs that have ended
 * @param counts the number of jobs that have ended, by outcome
 * @param error the reason why the list of the jobs is incomplete, or null
 */
public record Batch(
    String id, String state, String tenant, Instant createdAt, Instant cancelledAt, Instant completedAt, String prefix, String preset,
    long submitted, Integer total, int ended, Counts counts, Failure error) implements Event.Data {
    static Batch of(Fields fields) {
        return new Batch(
            fields.text("id"), fields.text("state"), fields.optionalText("tenant"), fields.time("createdAt"), fields.optionalTime("cancelledAt"),
            fields.optionalTime("completedAt"), fields.optionalText("prefix"), fields.optionalText("preset"), fields.integer("submitted"),
            fields.optionalInteger("total"), (int) fields.integer("ended"), fields.object("counts", Counts::of),
            fields.optional("error", each -> new Failure(each.code(), each.text("message"))));
    }

    /** Whether the batch is closed and all its jobs have ended. */
    public boolean isCompleted() {
        return state.equals("completed");
    }

    /**
     * Numbers of jobs that have ended, by outcome.
     *
     * @param ready jobs with images
     * @param failed jobs that failed
     * @param cancelled jobs that were cancelled
     * @param superseded jobs that were superseded
     */
    public record Counts(int ready, int failed, int cancelled, int superseded) {
        static Counts of(Fields fields) {
            return new Counts(
                (int) fields.integer("ready"), (int) fields.integer("failed"), (int) fields.integer("cancelled"), (int) fields.integer("superseded"));
        }
    }

    /**
     * The error of a list of jobs.
     *
     * @param code the reason
     * @param message a description for people
     */
    public record Failure(FailureCode code, String message) {}
}
