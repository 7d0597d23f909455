package org.example.halcyon;

import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;

/**
 * Selects events. An event must match all lists that are not empty.
 *
 * @param types the types
 * @param jobs ids of jobs
 * @param batches ids of batches, whose jobs match too
 * @param sources sources as in the job
 */
public record EventFilter(List<Event.Type> types, List<String> jobs, List<String> batches, List<String> sources) {
    /** All events. */
    public static final EventFilter ALL = new EventFilter(List.of(), List.of(), List.of(), List.of());

    /** Copies the lists. */
    public EventFilter {
        types = List.copyOf(types);
        jobs = List.copyOf(jobs);
        batches = List.copyOf(batches);
        sources = List.copyOf(sources);
    }

    /** The same filter for these types. */
    public EventFilter types(Event.Type... types) {
        return new EventFilter(List.of(types), jobs, batches, sources);
    }

    /** The same filter for the jobs with these ids. */
    public EventFilter jobs(String... ids) {
        return new EventFilter(types, List.of(ids), batches, sources);
    }

    /** The same filter for the batches with these ids. */
    public EventFilter batches(String... ids) {
        return new EventFilter(types, jobs, List.of(ids), sources);
    }

    /** The same filter for these sources. */
    public EventFilter sources(String... sources) {
        return new EventFilter(types, jobs, batches, List.of(sources));
    }

    Target target() {
        Target target = Target.of("events");
        if (!types.isEmpty())
            target.with("type", types.stream().map(each -> each.name().toLowerCase(Locale.ROOT).replace('_', '.')).collect(Collectors.joining(",")));
        jobs.forEach(each -> target.with("job", each));
        batches.forEach(each -> target.with("batch", each));
        sources.forEach(each -> target.with("source", each));
        return target;
    }
}
