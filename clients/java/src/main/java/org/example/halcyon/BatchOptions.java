package org.example.halcyon;

import java.util.UUID;

/**
 * Options of a new batch, which may be null. Begin with {@link #DEFAULT}.
 *
 * @param id the id; null for a random one
 * @param first the index of the first job: the number of jobs that the batch has already
 * @param open true if jobs follow in other requests, and then {@link Halcyon#closeBatch}
 * @param tenant the tenant of the batch, and of jobs that have none
 * @param priority the lane of jobs that have none
 * @param deadline the deadline of jobs that have none: seconds, or a date and time (RFC 3339)
 * @param webhook the webhook to which the completion of the batch is delivered
 */
public record BatchOptions(String id, int first, boolean open, String tenant, Job.Priority priority, String deadline, String webhook) {
    /** A closed batch with a random id. */
    public static final BatchOptions DEFAULT = new BatchOptions(null, 0, false, null, null, null, null);

    /** The same options with this id. */
    public BatchOptions id(String id) {
        return new BatchOptions(id, first, open, tenant, priority, deadline, webhook);
    }

    /** The same options for a part of a batch, whose first job has this index. More parts may follow. */
    public BatchOptions part(int first) {
        return new BatchOptions(id, first, true, tenant, priority, deadline, webhook);
    }

    /** The same options with this tenant. */
    public BatchOptions tenant(String tenant) {
        return new BatchOptions(id, first, open, tenant, priority, deadline, webhook);
    }

    /** The same options with this lane. */
    public BatchOptions priority(Job.Priority priority) {
        return new BatchOptions(id, first, open, tenant, priority, deadline, webhook);
    }

    /** The same options with this webhook. */
    public BatchOptions webhook(String webhook) {
        return new BatchOptions(id, first, open, tenant, priority, deadline, webhook);
    }

    /** The same options with an id, so that the request can be sent again. */
    BatchOptions named() {
        return id == null ? id(UUID.randomUUID().toString()) : this;
    }

    Target addTo(Target target) {
        return target.with("id", id).with("tenant", tenant).with("priority", priority == null ? null : priority.json())
            .with("deadline", deadline).with("webhook", webhook);
    }
}
