/**
 * The Redis keys of the results of a job, in the order of its variants, or the only one.
 *
 * The job must be valid. Throws a RangeError for a job with a preset without the fields of the preset, and for invalid colors.
 * @param {Job} job
 * @param {Template} [preset] the fields of the job's preset
 */
export function resultKeys(job: Job, preset?: import("./types.js").Template | undefined): string[];
/**
 * The canonical text that identifies the source of a job. See resultKeys.
 * @param {Job} job
 * @param {Template} [preset]
 */
export function sourceText(job: Job, preset?: import("./types.js").Template | undefined): string;
/**
 * The canonical text of each variant of a job. See resultKeys.
 * @param {Job} job
 * @param {Template} [preset]
 * @returns {string[]}
 */
export function variantTexts(job: Job, preset?: import("./types.js").Template | undefined): string[];
export type Job = import("./types.js").Job;
export type Template = import("./types.js").Template;
export type Fields = Record<string, any>;
