/**
 * The value of a Kafka message with a job: its JSON.
 * @param {Job} job
 */
export function encodeJob(job: Job): string;
/**
 * The Kafka topic of the job's lane.
 * @param {Job} job
 * @param {string} [prefix] the prefix of all topics
 */
export function jobTopic(job: Job, prefix?: string | undefined): string;
/**
 * @typedef {import("./types.js").Job} Job
 * @typedef {import("./types.js").Source} Source
 */
/** Sources that are objects. */
export const sources: Readonly<{
    /**
     * A URL that changes, such as a presigned one. The image is identified by the cache key.
     * @param {string} url
     * @param {string} cacheKey
     * @returns {Source}
     */
    url: (url: string, cacheKey: string) => Source;
    /**
     * An image that is part of the job.
     * @param {Uint8Array} content
     * @param {string} [cacheKey]
     * @returns {Source}
     */
    inline: (content: Uint8Array, cacheKey?: string | undefined) => Source;
    /**
     * An avatar: one to three letters on a colored square. Colors are those of CSS.
     * @param {string} letters
     * @param {{background?: string, foreground?: string}} [colors]
     * @returns {Source}
     */
    initials: (letters: string, colors?: {
        background?: string | undefined;
        foreground?: string | undefined;
    } | undefined) => Source;
    /**
     * The frame of a video at a time in seconds.
     * @param {Source} video
     * @param {number} [seconds]
     * @returns {Source}
     */
    video: (video: Source, seconds?: number | undefined) => Source;
    /**
     * Frames of a video in rows, at equal distances. The width is that of each in pixels.
     * @param {Source} video
     * @param {{columns?: number, rows?: number, width?: number}} [contactSheet]
     * @returns {Source}
     */
    videoSheet: (video: Source, contactSheet?: {
        columns?: number | undefined;
        rows?: number | undefined;
        width?: number | undefined;
    } | undefined) => Source;
    /**
     * An animation of frames of a video at equal distances. The duration is in seconds, the width in pixels.
     * @param {Source} video
     * @param {{frames?: number, duration?: number, width?: number}} [preview]
     * @returns {Source}
     */
    videoPreview: (video: Source, preview?: {
        frames?: number | undefined;
        duration?: number | undefined;
        width?: number | undefined;
    } | undefined) => Source;
}>;
export type Job = import("./types.js").Job;
export type Source = import("./types.js").Source;
