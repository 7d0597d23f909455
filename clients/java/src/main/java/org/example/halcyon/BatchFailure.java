package org.example.halcyon;

/**
 * A failed job of a batch.
 *
 * @param job the id of the job
 * @param index the index in the batch, or null
 * @param code the reason
 * @param message a description for people
 * @param record the record of the job, TOPIC-PARTITION-OFFSET, or an empty text
 */
public record BatchFailure(String job, Integer index, FailureCode code, String message, String record) {
    static BatchFailure of(Fields fields) {
        return new BatchFailure(fields.text("job"), fields.optionalInteger("index"), fields.code(), fields.text("message"), fields.text("record"));
    }
}
