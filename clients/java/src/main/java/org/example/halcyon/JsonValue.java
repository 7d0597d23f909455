package org.example.halcyon;

/** A part of a job that has a form in JSON. */
public interface JsonValue {
    /** The value in JSON: a map, list, string, number, boolean or null. */
    Object json();
}
