package org.example.halcyon;

import java.util.UUID;

/**
 * Options of {@link Halcyon#rerender}, which may be null. Begin with {@link #DEFAULT}.
 *
 * @param id the id of the batch; null for a random one
 * @param tenant the tenant whose results are made again; null for all
 * @param priority the lane of the jobs; null for low
 * @param reload true to fetch the sources again, and render results that exist
 * @param webhook the webhook to which the completion of the batch is delivered
 */
public record RerenderOptions(String id, String tenant, Job.Priority priority, boolean reload, String webhook) {
    /** All results, in the lane low. */
    public static final RerenderOptions DEFAULT = new RerenderOptions(null, null, null, false, null);

    RerenderOptions named() {
        return id == null ? new RerenderOptions(UUID.randomUUID().toString(), tenant, priority, reload, webhook) : this;
    }

    Target addTo(Target target) {
        return target.with("id", id).with("tenant", tenant).with("priority", priority == null ? null : priority.json())
            .with("reload", reload ? true : null).with("webhook", webhook);
    }
}
