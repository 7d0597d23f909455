/**
 * A client for Halcyon, a distributed cluster of image workers, for Node.js and browsers.
 *
 *     import { Client } from "halcyon-client";
 *     const client = new Client("http://127.0.0.1:8080");
 *     const { blob } = await client.image({ source: "https://example.org/cat.jpg", width: 400, height: 300 });
 */
export { Client } from "./client.js";
export {
  ConnectionFailed, FailureCode, HalcyonError, InvalidResponse, JobCancelled, JobFailed, JobSuperseded, JobTimeout, NotDelivered, Problem,
  ProblemKind, TooLarge,
} from "./errors.js";
export { encodeJob, jobTopic, sources } from "./jobs.js";
export { resultKeys, sourceText, variantTexts } from "./keys.js";
export { processors } from "./processors.js";
export { eventsTarget, imageTarget, infoTarget, renderTarget, URLSigner } from "./urls.js";

/**
 * @typedef {import("./types.js").Job} Job
 * @typedef {import("./types.js").Template} Template
 * @typedef {import("./types.js").Output} Output
 * @typedef {import("./types.js").Source} Source
 * @typedef {import("./types.js").Processor} Processor
 * @typedef {import("./types.js").HalcyonEvent} HalcyonEvent
 * @typedef {import("./types.js").Ready} Ready
 * @typedef {import("./types.js").Failed} Failed
 * @typedef {import("./types.js").Variant} Variant
 * @typedef {import("./types.js").SourceInfo} SourceInfo
 * @typedef {import("./types.js").Batch} Batch
 * @typedef {import("./types.js").BatchFailure} BatchFailure
 * @typedef {import("./types.js").BatchSubmission} BatchSubmission
 * @typedef {import("./types.js").Preset} Preset
 * @typedef {import("./types.js").AcceptedJob} AcceptedJob
 * @typedef {import("./types.js").JobState} JobState
 * @typedef {import("./types.js").Message} Message
 * @typedef {import("./types.js").Image} Image
 * @typedef {import("./types.js").Options} Options
 */
