package org.example.halcyon;

import java.util.Map;

/** One of several outputs of a {@link Job}. It inherits the fields of the job that it does not set; one that sets a field of the size inherits none of them. */
public final class Output extends OutputFields<Output> {
    private Output(Map<String, Object> fields) {
        super(fields);
    }

    /** An output that has all fields of the job. */
    public static Output of() {
        return new Output(Map.of());
    }

    /** An output with a name, by which it is known in events and upload URLs. */
    public static Output named(String name) {
        return of().with("name", name);
    }

    @Override
    Output copy(Map<String, Object> fields) {
        return new Output(fields);
    }
}
