package org.example.halcyon;

import java.util.Set;

/**
 * The state of a job.
 *
 * @param id the id of the job
 * @param state accepted, or the type of the last event: started, ready, failed, cancelled or superseded
 * @param event the last event, or null before the first one
 */
public record JobState(String id, String state, Event event) {
    private static final Set<String> ENDS = Set.of("ready", "failed", "cancelled", "superseded");

    static JobState of(Fields fields) {
        return new JobState(fields.text("id"), fields.text("state"), fields.optional("event", Event::of));
    }

    /** Whether the job has ended. */
    public boolean hasEnded() {
        return ENDS.contains(state);
    }

    /** The images of a job that has ended, with the exceptions of {@link Event#result}. */
    public Event.Ready result() {
        if (event != null) return event.result();
        if (state.equals("cancelled")) throw new JobCancelledException(id);
        throw new InvalidResponseException("job " + id + " has ended without an event", null);
    }
}
