/** @typedef {import("./types.js").Failed} Failed */

/** The kinds of problems of a gateway. */
export const ProblemKind = Object.freeze({
  badRequest: "bad-request",
  invalidJob: "invalid-job",
  unauthorized: "unauthorized",
  forbidden: "forbidden",
  notFound: "not-found",
  methodNotAllowed: "method-not-allowed",
  notAcceptable: "not-acceptable",
  conflict: "conflict",
  gone: "gone",
  preconditionFailed: "precondition-failed",
  tooLarge: "too-large",
  unsupportedMediaType: "unsupported-media-type",
  rangeNotSatisfiable: "range-not-satisfiable",
  misdirected: "misdirected",
  unprocessableImage: "unprocessable-image",
  tooManyRequests: "too-many-requests",
  badOrigin: "bad-origin",
  unavailable: "unavailable",
  timeout: "timeout",
});

/** The failure codes of jobs. docs/events.md describes them. */
export const FailureCode = Object.freeze({
  invalidJob: "invalid_job",
  unsupportedSource: "unsupported_source",
  blockedAddress: "blocked_address",
  notFound: "not_found",
  gone: "gone",
  forbidden: "forbidden",
  httpError: "http_error",
  dnsError: "dns_error",
  connectError: "connect_error",
  originUnavailable: "origin_unavailable",
  tlsError: "tls_error",
  timeout: "timeout",
  tooManyRedirects: "too_many_redirects",
  tooLarge: "too_large",
  tooManyPixels: "too_many_pixels",
  unsupportedFormat: "unsupported_format",
  corruptImage: "corrupt_image",
  expired: "expired",
  providerError: "provider_error",
  poison: "poison",
  internal: "internal",
});

/** The base of all errors of this package. */
export class HalcyonError extends Error {
  /**
   * @param {string} message
   * @param {ErrorOptions} [options]
   */
  constructor(message, options) {
    super(message, options);
    this.name = new.target.name;
  }

  /** Whether the same request or job may succeed later. */
  get isTransient() {
    return false;
  }
}

/** The gateway could not be reached, or the connection broke. */
export class ConnectionFailed extends HalcyonError {
  /** @override */
  get isTransient() {
    return true;
  }
}

/** The job or the batch has not ended within the time-out. */
export class JobTimeout extends HalcyonError {
  /** @override */
  get isTransient() {
    return true;
  }
}

/** A response or an event exceeds `maximumBytes`. */
export class TooLarge extends HalcyonError {}

/** The response is not one of a gateway that this version understands. */
export class InvalidResponse extends HalcyonError {}

/** The image cannot be read by the client: it was uploaded to a URL that only the submitter of the job knows. */
export class NotDelivered extends HalcyonError {}

/** A request that the gateway refused (RFC 9457). */
export class Problem extends HalcyonError {
  /**
   * @param {number} status the HTTP status
   * @param {unknown} said the body of the response
   * @param {number} [retryAfter]
   */
  constructor(status, said, retryAfter = 0) {
    const { type, title, detail, code } = /** @type {Record<string, string | undefined>} */ (said && typeof said === "object" ? said : {});
    super(`${title ?? "HTTP status"} (${status}): ${detail ?? "the response has no details"}`);
    /** The HTTP status. */
    this.status = status;
    /** The kind of problem, one of `ProblemKind`; `about:blank` if the response does not say. */
    this.kind = type?.split("/").pop() ?? "about:blank";
    /** A summary that is the same for all problems of the kind. */
    this.title = title ?? `HTTP status ${status}`;
    /** What is wrong, and often how to fix it. */
    this.detail = detail ?? "the response has no details";
    /** The failure code, if the problem concerns a job. */
    this.code = /** @type {import("./types.js").Code | undefined} */ (code);
    /** The seconds after which the request may be repeated; 0 if the gateway did not say. */
    this.retryAfter = retryAfter;
    /** The number of times that the request was sent. */
    this.attempts = 1;
  }

  /** @override */
  get isTransient() {
    return [408, 429, 502, 503, 504].includes(this.status);
  }
}

/** The job failed. `code` is one of `FailureCode`, or of a later version. */
export class JobFailed extends HalcyonError {
  /** @param {Failed} event the data of the event */
  constructor(event) {
    super(`failed: ${event.code}: ${event.message}`);
    /** The data of the event. */
    this.event = event;
    this.jobID = event.job.id;
    this.code = event.code;
    /** Whether the same job may succeed if it is submitted again later. */
    this.retryable = event.retryable;
  }

  /** @override */
  get isTransient() {
    return this.retryable;
  }
}

/** The job was cancelled. */
export class JobCancelled extends HalcyonError {
  /** @param {string} jobID */
  constructor(jobID) {
    super(`the job ${jobID} was cancelled`);
    this.jobID = jobID;
  }
}

/** A job of a higher generation for the same slot superseded this one. */
export class JobSuperseded extends HalcyonError {
  /**
   * @param {string} jobID
   * @param {number} generation
   */
  constructor(jobID, generation) {
    super(`the job ${jobID} was superseded by generation ${generation}`);
    this.jobID = jobID;
    this.generation = generation;
  }
}
