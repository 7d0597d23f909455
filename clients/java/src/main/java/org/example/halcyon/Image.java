package org.example.halcyon;

/**
 * An image that a job has made.
 *
 * @param data the file
 * @param variant its properties
 * @param ready the content of the event of the job
 */
public record Image(byte[] data, Event.Variant variant, Event.Ready ready) {}
