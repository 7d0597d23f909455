/**
 * @typedef {import("./types.js").Job} Job
 * @typedef {import("./types.js").Source} Source
 */

/** Sources that are objects. */
export const sources = Object.freeze({
  /**
   * A URL that changes, such as a presigned one. The image is identified by the cache key.
   * @param {string} url
   * @param {string} cacheKey
   * @returns {Source}
   */
  url: (url, cacheKey) => ({ url, cacheKey }),

  /**
   * An image that is part of the job.
   * @param {Uint8Array} content
   * @param {string} [cacheKey]
   * @returns {Source}
   */
  inline: (content, cacheKey) => {
    let binary = "";
    for (const byte of content) binary += String.fromCharCode(byte);
    return { base64: btoa(binary), ...(cacheKey !== undefined && { cacheKey }) };
  },

  /**
   * An avatar: one to three letters on a colored square. Colors are those of CSS.
   * @param {string} letters
   * @param {{background?: string, foreground?: string}} [colors]
   * @returns {Source}
   */
  initials: (letters, colors = {}) => ({ initials: letters, ...colors }),

  /**
   * The frame of a video at a time in seconds.
   * @param {Source} video
   * @param {number} [seconds]
   * @returns {Source}
   */
  video: (video, seconds = 0) => ({ video, seconds }),

  /**
   * Frames of a video in rows, at equal distances. The width is that of each in pixels.
   * @param {Source} video
   * @param {{columns?: number, rows?: number, width?: number}} [contactSheet]
   * @returns {Source}
   */
  videoSheet: (video, contactSheet = {}) => ({ video, contactSheet }),

  /**
   * An animation of frames of a video at equal distances. The duration is in seconds, the width in pixels.
   * @param {Source} video
   * @param {{frames?: number, duration?: number, width?: number}} [preview]
   * @returns {Source}
   */
  videoPreview: (video, preview = {}) => ({ video, preview }),
});

/**
 * The value of a Kafka message with a job: its JSON.
 * @param {Job} job
 */
export function encodeJob(job) {
  return JSON.stringify(job);
}

/**
 * The Kafka topic of the job's lane.
 * @param {Job} job
 * @param {string} [prefix] the prefix of all topics
 */
export function jobTopic(job, prefix = "halcyon.") {
  return `${prefix}jobs${job.priority === undefined || job.priority === "normal" ? "" : `.${job.priority}`}`;
}
