package org.example.halcyon;

import java.util.List;
import java.util.Map;

/**
 * A preset of a cluster: a named template of jobs.
 *
 * @param name the name
 * @param version the version, from 1
 * @param job the fields of the jobs with the preset, in JSON
 * @param overridable the names of fields that a job may set itself although they belong to the preset
 * @param origin settings or registered
 */
public record Preset(String name, long version, Map<String, Object> job, List<String> overridable, String origin) {
    static Preset of(Fields fields) {
        return new Preset(
            fields.text("name"), fields.integer("version"), fields.object("job", Fields::members), fields.texts("overridable"), fields.text("origin"));
    }
}
