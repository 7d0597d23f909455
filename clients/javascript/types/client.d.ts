/**
 * A client of a Halcyon cluster, connected to one of its gateways.
 *
 * All methods reject with a `Problem` if the gateway refuses the request, `ConnectionFailed` if it cannot be reached, `TooLarge`,
 * `InvalidResponse`, or the reason of their `signal`.
 */
export class Client {
    /**
     * @param {string} url the URL of the gateway
     * @param {import("./types.js").Options} options
     */
    constructor(url: string, { key, retryTimeout, jobTimeout, readTimeout, maximumBytes }?: import("./types.js").Options);
    /** The URL of the gateway. */
    get url(): string;
    /**
     * Submits a job. The brokers have stored it when the promise is fulfilled. Without a response, it is sent again with the same id.
     * @param {Job} job
     * @param {RequestOptions} options
     * @returns {Promise<AcceptedJob>}
     */
    submit(job: Job, { signal }?: RequestOptions): Promise<AcceptedJob>;
    /**
     * Submits many jobs in one request. Returns the accepted job or the problem of each, in order.
     * @param {Job[]} jobs
     * @param {RequestOptions} options
     * @returns {Promise<(AcceptedJob | Problem)[]>}
     */
    submitAll(jobs: Job[], { signal }?: RequestOptions): Promise<(AcceptedJob | Problem)[]>;
    /**
     * The state of a job, after its end or `wait` seconds.
     * @param {string} id
     * @param {RequestOptions & {wait?: number}} options
     * @returns {Promise<import("./types.js").JobState>}
     */
    jobState(id: string, { wait, signal }?: RequestOptions & {
        wait?: number;
    }): Promise<import("./types.js").JobState>;
    /**
     * Waits until a job is ready. Rejects with `JobFailed`, `JobCancelled` or `JobSuperseded` if it ends otherwise, and with `JobTimeout`.
     * @param {string} id
     * @param {WaitOptions} options
     * @returns {Promise<Ready>}
     */
    wait(id: string, { timeout, signal }?: WaitOptions): Promise<Ready>;
    /**
     * Submits a job and waits until it is ready. Cancels the job on a time-out and when the signal is aborted.
     * @param {Job} job
     * @param {WaitOptions} options
     * @returns {Promise<Ready>}
     */
    run(job: Job, { timeout, signal }?: WaitOptions): Promise<Ready>;
    /**
     * Cancels a job; its event tells whether that was in time. Returns false if it has already ended.
     * @param {string} id
     * @param {RequestOptions} options
     */
    cancel(id: string, { signal }?: RequestOptions): Promise<boolean>;
    /**
     * Submits a job, waits for its end and reads its first image. Rejects like `run`.
     * @param {Job} job
     * @param {WaitOptions} options
     * @returns {Promise<import("./types.js").Image>}
     */
    image(job: Job, options?: WaitOptions): Promise<import("./types.js").Image>;
    /**
     * Like image, but reads the images of all variants, without those that could not be made.
     * @param {Job} job
     * @param {WaitOptions} options
     * @returns {Promise<import("./types.js").Image[]>}
     */
    images(job: Job, options?: WaitOptions): Promise<import("./types.js").Image[]>;
    /**
     * Reads the file of a variant of a ready event: from the event, from the gateway, from the public URL of the result store, or from the address
     * to which it was uploaded. An image that is neither stored nor in the event can be read once. Rejects with a `Problem` of the kind `not-found`
     * if it does not exist any more, and with `NotDelivered` if only the submitter knows its address.
     * @param {Variant} variant
     * @param {RequestOptions} options
     * @returns {Promise<Blob>}
     */
    fetch({ key, data, format, url, put }: Variant, { signal }?: RequestOptions): Promise<Blob>;
    /**
     * Reads a stored result by its key. Rejects with a `Problem` of the kind `not-found` if there is none.
     * @param {string} key
     * @param {RequestOptions} options
     * @returns {Promise<Blob>}
     */
    stored(key: string, { signal }?: RequestOptions): Promise<Blob>;
    /**
     * Reads the image of a job from /v1/render, which renders it if necessary. Problems have the failure code of the job.
     * @param {Job} job
     * @param {RequestOptions} options
     * @returns {Promise<Blob>}
     */
    render(job: Job, { signal }?: RequestOptions): Promise<Blob>;
    /**
     * Reads the facts about the source of a job from /v1/info. No image is rendered.
     * @param {Job} job
     * @param {RequestOptions} options
     * @returns {Promise<import("./types.js").SourceInfo>}
     */
    info(job: Job, { signal }?: RequestOptions): Promise<import("./types.js").SourceInfo>;
    /**
     * Submits jobs as a batch, or as a part of one. Invalid jobs are rejected, and reported in `problems`. Rejects with a `Problem` of the kind
     * `conflict` if the batch is closed or belongs to another key, and `bad-request` if no job is valid.
     * @param {Job[]} jobs
     * @param {PartOptions} options
     */
    submitBatch(jobs: Job[], options?: PartOptions): Promise<import("./types.js").BatchSubmission>;
    /**
     * Submits a batch of jobs that differ in their sources only.
     * @param {Template} template
     * @param {Source[]} sources
     * @param {PartOptions} options
     */
    submitTemplate(template: Template, sources: Source[], options?: PartOptions): Promise<import("./types.js").BatchSubmission>;
    /**
     * Submits a batch of a job for each object whose URL begins with a prefix, `s3://bucket/path/`. A worker lists the objects.
     * @param {Template} template
     * @param {string} prefix
     * @param {BatchOptions} options
     */
    submitPrefix(template: Template, prefix: string, options?: BatchOptions): Promise<import("./types.js").BatchSubmission>;
    /**
     * The state of a batch.
     * @param {string} id
     * @param {RequestOptions} options
     * @returns {Promise<Batch>}
     */
    batch(id: string, { signal }?: RequestOptions): Promise<Batch>;
    /**
     * The newest batches, at most 1000.
     * @param {RequestOptions & {limit?: number}} options
     * @returns {Promise<Batch[]>}
     */
    batches({ limit, signal }?: RequestOptions & {
        limit?: number;
    }): Promise<Batch[]>;
    /**
     * The failed jobs of a batch in the order of their ends, without the first `start`. Reads as many pages as needed.
     * @param {string} id
     * @param {RequestOptions & {start?: number, limit?: number}} options
     * @returns {Promise<import("./types.js").BatchFailure[]>}
     */
    batchFailures(id: string, { start, limit, signal }?: RequestOptions & {
        start?: number;
        limit?: number;
    }): Promise<import("./types.js").BatchFailure[]>;
    /**
     * Sets the number of jobs of an open batch.
     * @param {string} id
     * @param {number} total
     * @param {RequestOptions} options
     * @returns {Promise<Batch>}
     */
    closeBatch(id: string, total: number, { signal }?: RequestOptions): Promise<Batch>;
    /**
     * Cancels all jobs of a batch that have not ended. Rejects with a `Problem` of the kind `conflict` for a completed batch.
     * @param {string} id
     * @param {RequestOptions} options
     * @returns {Promise<Batch>}
     */
    cancelBatch(id: string, { signal }?: RequestOptions): Promise<Batch>;
    /**
     * Submits the failed jobs of a completed batch as a new batch, whose id may be given.
     * @param {string} id
     * @param {BatchOptions} options
     * @returns {Promise<BatchSubmission>}
     */
    retryBatch(id: string, { signal, id: newBatch, ...parameters }?: BatchOptions): Promise<BatchSubmission>;
    /**
     * Waits until a batch is completed. Rejects with `JobTimeout`.
     * @param {string} id
     * @param {WaitOptions} options
     * @returns {Promise<Batch>}
     */
    waitForBatch(id: string, { timeout, signal }?: WaitOptions): Promise<Batch>;
    /**
     * Registers or replaces a preset. Needs the scope `admin`, like all methods of presets.
     * @param {string} name
     * @param {Template} job the fields of its jobs
     * @param {RequestOptions & {overridable?: (keyof Job)[], version?: number}} options the fields that jobs may set themselves, and the version (the
     *   next one)
     * @returns {Promise<Preset>}
     */
    putPreset(name: string, job: Template, { overridable, version, signal }?: RequestOptions & {
        overridable?: (keyof Job)[];
        version?: number;
    }): Promise<Preset>;
    /**
     * A preset.
     * @param {string} name
     * @param {RequestOptions} options
     * @returns {Promise<Preset>}
     */
    preset(name: string, { signal }?: RequestOptions): Promise<Preset>;
    /**
     * All presets, ordered by name.
     * @param {RequestOptions} options
     * @returns {Promise<Preset[]>}
     */
    presets({ signal }?: RequestOptions): Promise<Preset[]>;
    /**
     * Deletes a preset.
     * @param {string} name
     * @param {RequestOptions} options
     */
    deletePreset(name: string, { signal }?: RequestOptions): Promise<void>;
    /**
     * Makes the results of a preset again, as a batch. With `reload`, the sources are fetched again.
     * @param {string} name
     * @param {Omit<BatchOptions, "deadline"> & {reload?: boolean}} options
     * @returns {Promise<BatchSubmission>}
     */
    rerender(name: string, { signal, id, ...parameters }?: Omit<BatchOptions, "deadline"> & {
        reload?: boolean;
    }): Promise<BatchSubmission>;
    /**
     * Yields the events that match all filters, from now on or after a cursor, without end. A connection that breaks is opened again after a delay and
     * resumes: no event is missed or repeated. Throws permanent errors.
     * @param {import("./types.js").EventFilters & RequestOptions & {after?: string}} options `after` is a position, from cursor() or a message
     * @returns {AsyncGenerator<Message, void, undefined>}
     */
    events({ after, signal, ...filters }?: import("./types.js").EventFilters & RequestOptions & {
        after?: string;
    }): AsyncGenerator<Message, void, undefined>;
    /**
     * The current position in the stream of events: `events({ after })` yields all later events.
     * @param {RequestOptions} options
     */
    cursor({ signal }?: RequestOptions): Promise<string>;
    #private;
}
export type Job = import("./types.js").Job;
export type Template = import("./types.js").Template;
export type Source = import("./types.js").Source;
export type Ready = import("./types.js").Ready;
export type Variant = import("./types.js").Variant;
export type Batch = import("./types.js").Batch;
export type Preset = import("./types.js").Preset;
export type Message = import("./types.js").Message;
export type AcceptedJob = import("./types.js").AcceptedJob;
export type BatchSubmission = import("./types.js").BatchSubmission;
export type RequestOptions = import("./types.js").RequestOptions;
export type WaitOptions = import("./types.js").WaitOptions;
export type BatchOptions = import("./types.js").BatchOptions;
export type PartOptions = import("./types.js").PartOptions;
import { Problem } from "./errors.js";
