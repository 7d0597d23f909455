/** @typedef {import("./types.js").Failed} Failed */
/** The kinds of problems of a gateway. */
export const ProblemKind: Readonly<{
    badRequest: "bad-request";
    invalidJob: "invalid-job";
    unauthorized: "unauthorized";
    forbidden: "forbidden";
    notFound: "not-found";
    methodNotAllowed: "method-not-allowed";
    notAcceptable: "not-acceptable";
    conflict: "conflict";
    gone: "gone";
    preconditionFailed: "precondition-failed";
    tooLarge: "too-large";
    unsupportedMediaType: "unsupported-media-type";
    rangeNotSatisfiable: "range-not-satisfiable";
    misdirected: "misdirected";
    unprocessableImage: "unprocessable-image";
    tooManyRequests: "too-many-requests";
    badOrigin: "bad-origin";
    unavailable: "unavailable";
    timeout: "timeout";
}>;
/** The failure codes of jobs. docs/events.md describes them. */
export const FailureCode: Readonly<{
    invalidJob: "invalid_job";
    unsupportedSource: "unsupported_source";
    blockedAddress: "blocked_address";
    notFound: "not_found";
    gone: "gone";
    forbidden: "forbidden";
    httpError: "http_error";
    dnsError: "dns_error";
    connectError: "connect_error";
    originUnavailable: "origin_unavailable";
    tlsError: "tls_error";
    timeout: "timeout";
    tooManyRedirects: "too_many_redirects";
    tooLarge: "too_large";
    tooManyPixels: "too_many_pixels";
    unsupportedFormat: "unsupported_format";
    corruptImage: "corrupt_image";
    expired: "expired";
    providerError: "provider_error";
    poison: "poison";
    internal: "internal";
}>;
/** The base of all errors of this package. */
export class HalcyonError extends Error {
    /**
     * @param {string} message
     * @param {ErrorOptions} [options]
     */
    constructor(message: string, options?: ErrorOptions | undefined);
    /** Whether the same request or job may succeed later. */
    get isTransient(): boolean;
}
/** The gateway could not be reached, or the connection broke. */
export class ConnectionFailed extends HalcyonError {
}
/** The job or the batch has not ended within the time-out. */
export class JobTimeout extends HalcyonError {
}
/** A response or an event exceeds `maximumBytes`. */
export class TooLarge extends HalcyonError {
}
/** The response is not one of a gateway that this version understands. */
export class InvalidResponse extends HalcyonError {
}
/** The image cannot be read by the client: it was uploaded to a URL that only the submitter of the job knows. */
export class NotDelivered extends HalcyonError {
}
/** A request that the gateway refused (RFC 9457). */
export class Problem extends HalcyonError {
    /**
     * @param {number} status the HTTP status
     * @param {unknown} said the body of the response
     * @param {number} [retryAfter]
     */
    constructor(status: number, said: unknown, retryAfter?: number | undefined);
    /** The HTTP status. */
    status: number;
    /** The kind of problem, one of `ProblemKind`; `about:blank` if the response does not say. */
    kind: string;
    /** A summary that is the same for all problems of the kind. */
    title: string;
    /** What is wrong, and often how to fix it. */
    detail: string;
    /** The failure code, if the problem concerns a job. */
    code: import("./types.js").Code | undefined;
    /** The seconds after which the request may be repeated; 0 if the gateway did not say. */
    retryAfter: number;
    /** The number of times that the request was sent. */
    attempts: number;
}
/** The job failed. `code` is one of `FailureCode`, or of a later version. */
export class JobFailed extends HalcyonError {
    /** @param {Failed} event the data of the event */
    constructor(event: Failed);
    /** The data of the event. */
    event: import("./types.js").Failed;
    jobID: string;
    code: import("./types.js").Code;
    /** Whether the same job may succeed if it is submitted again later. */
    retryable: boolean;
}
/** The job was cancelled. */
export class JobCancelled extends HalcyonError {
    /** @param {string} jobID */
    constructor(jobID: string);
    jobID: string;
}
/** A job of a higher generation for the same slot superseded this one. */
export class JobSuperseded extends HalcyonError {
    /**
     * @param {string} jobID
     * @param {number} generation
     */
    constructor(jobID: string, generation: number);
    jobID: string;
    generation: number;
}
export type Failed = import("./types.js").Failed;
