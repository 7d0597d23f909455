package org.example.halcyon;

/**
 * An item of an {@link EventStream}.
 *
 * @param event the event; null for a gap
 * @param gap the reason why events before the next one are missing: the broker has deleted them; otherwise null
 * @param cursor the position after the item, at which another stream can resume
 */
public record Message(Event event, String gap, String cursor) {}
