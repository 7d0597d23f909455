import { ConnectionFailed, HalcyonError, InvalidResponse, JobCancelled, JobFailed, JobSuperseded, JobTimeout, NotDelivered, Problem } from "./errors.js";
import { jittered, pause, Transport } from "./http.js";
import { encodeJob } from "./jobs.js";
import { eventsTarget, imageTarget, infoTarget, renderTarget } from "./urls.js";

/**
 * @typedef {import("./types.js").Job} Job
 * @typedef {import("./types.js").Template} Template
 * @typedef {import("./types.js").Source} Source
 * @typedef {import("./types.js").Ready} Ready
 * @typedef {import("./types.js").Variant} Variant
 * @typedef {import("./types.js").Batch} Batch
 * @typedef {import("./types.js").Preset} Preset
 * @typedef {import("./types.js").Message} Message
 * @typedef {import("./types.js").AcceptedJob} AcceptedJob
 * @typedef {import("./types.js").BatchSubmission} BatchSubmission
 * @typedef {import("./types.js").RequestOptions} RequestOptions
 * @typedef {import("./types.js").WaitOptions} WaitOptions
 * @typedef {import("./types.js").BatchOptions} BatchOptions
 * @typedef {import("./types.js").PartOptions} PartOptions
 */

const JSON_TYPE = "application/json";
const NDJSON_TYPE = "application/x-ndjson";
const ENDS = ["ready", "failed", "cancelled", "superseded"];

/**
 * A client of a Halcyon cluster, connected to one of its gateways.
 *
 * All methods reject with a `Problem` if the gateway refuses the request, `ConnectionFailed` if it cannot be reached, `TooLarge`,
 * `InvalidResponse`, or the reason of their `signal`.
 */
export class Client {
  #transport;
  #options;

  /**
   * @param {string} url the URL of the gateway
   * @param {import("./types.js").Options} options
   */
  constructor(url, { key, retryTimeout = 30, jobTimeout = 300, readTimeout = 60, maximumBytes = 64 << 20 } = {}) {
    this.#options = { key, retryTimeout, jobTimeout, readTimeout, maximumBytes };
    this.#transport = new Transport(url, this.#options);
  }

  /** The URL of the gateway. */
  get url() {
    return this.#transport.url;
  }

  // Jobs

  /**
   * Submits a job. The brokers have stored it when the promise is fulfilled. Without a response, it is sent again with the same id.
   * @param {Job} job
   * @param {RequestOptions} options
   * @returns {Promise<AcceptedJob>}
   */
  async submit(job, { signal } = {}) {
    return accepted(await this.#json("/v1/jobs", { method: "POST", body: encodeJob({ ...job, id: job.id ?? newID() }), type: JSON_TYPE, signal }));
  }

  /**
   * Submits many jobs in one request. Returns the accepted job or the problem of each, in order.
   * @param {Job[]} jobs
   * @param {RequestOptions} options
   * @returns {Promise<(AcceptedJob | Problem)[]>}
   */
  async submitAll(jobs, { signal } = {}) {
    if (!jobs.length) return [];
    const body = ndjson(jobs.map((job) => ({ ...job, id: job.id ?? newID() })));
    const answer = await this.#transport.send("/v1/jobs", { method: "POST", body, type: NDJSON_TYPE, signal });
    const lines = (await answer.text()).trim().split("\n").map((line) => JSON.parse(line));
    if (lines.length !== jobs.length) throw new InvalidResponse(`${lines.length} results for ${jobs.length} jobs`);
    return lines.map((line) => (line.problem ? new Problem(line.problem.status, line.problem) : accepted(line)));
  }

  /**
   * The state of a job, after its end or `wait` seconds.
   * @param {string} id
   * @param {RequestOptions & {wait?: number}} options
   * @returns {Promise<import("./types.js").JobState>}
   */
  async jobState(id, { wait = 0, signal } = {}) {
    return this.#json(`/v1/jobs/${encodeURIComponent(id)}${wait ? `?wait=${wait.toFixed(3)}` : ""}`, { signal, wait });
  }

  /**
   * Waits until a job is ready. Rejects with `JobFailed`, `JobCancelled` or `JobSuperseded` if it ends otherwise, and with `JobTimeout`.
   * @param {string} id
   * @param {WaitOptions} options
   * @returns {Promise<Ready>}
   */
  async wait(id, { timeout = this.#options.jobTimeout, signal } = {}) {
    const end = Date.now() + timeout * 1000;
    for (let begun = Date.now(); begun < end; begun = Date.now()) {
      const wait = Math.min(25, (end - begun) / 1000);
      try {
        const state = await this.#json(`/v1/jobs/${encodeURIComponent(id)}?wait=${wait.toFixed(3)}`, { signal, wait, until: end });
        if (ENDS.includes(state.state)) return result(id, state);
      } catch (error) {
        if (error instanceof Problem || error instanceof ConnectionFailed ? error.isTransient && Date.now() + 500 >= end : false) break;
        throw error;
      }
      // Limits the rate at a gateway that responds at once.
      await pause(Math.min(250 - (Date.now() - begun), end - Date.now()), signal);
    }
    throw new JobTimeout(`the job ${id} has not ended within ${timeout} s`);
  }

  /**
   * Submits a job and waits until it is ready. Cancels the job on a time-out and when the signal is aborted.
   * @param {Job} job
   * @param {WaitOptions} options
   * @returns {Promise<Ready>}
   */
  async run(job, { timeout, signal } = {}) {
    signal?.throwIfAborted();
    const id = job.id ?? newID();
    // The submission is completed even if the signal is aborted: only a job that the gateway has accepted can be cancelled.
    const submission = this.submit({ ...job, id });
    try {
      await unlessAborted(submission, signal);
      return await this.wait(id, { timeout, signal });
    } catch (error) {
      if (signal?.aborted || error instanceof JobTimeout) {
        const cancelled = submission.then(() => this.cancel(id)).catch(() => {}); // The job is done in vain then.
        if (!signal?.aborted) await cancelled;
      }
      throw error;
    }
  }

  /**
   * Cancels a job; its event tells whether that was in time. Returns false if it has already ended.
   * @param {string} id
   * @param {RequestOptions} options
   */
  async cancel(id, { signal } = {}) {
    try {
      await this.#transport.send(`/v1/jobs/${encodeURIComponent(id)}`, { method: "DELETE", signal });
      return true;
    } catch (error) {
      if (error instanceof Problem && error.status === 409) return false;
      throw error;
    }
  }

  // Images

  /**
   * Submits a job, waits for its end and reads its first image. Rejects like `run`.
   * @param {Job} job
   * @param {WaitOptions} options
   * @returns {Promise<import("./types.js").Image>}
   */
  async image(job, options = {}) {
    const ready = await this.run(byReference(job), options);
    const [variant] = ready.variants;
    if (!variant) throw new InvalidResponse("the job has made no image");
    return { blob: await this.fetch(variant, options), variant, ready };
  }

  /**
   * Like image, but reads the images of all variants, without those that could not be made.
   * @param {Job} job
   * @param {WaitOptions} options
   * @returns {Promise<import("./types.js").Image[]>}
   */
  async images(job, options = {}) {
    const ready = await this.run(byReference(job), options);
    return Promise.all(ready.variants.map(async (variant) => ({ blob: await this.fetch(variant, options), variant, ready })));
  }

  /**
   * Reads the file of a variant of a ready event: from the event, from the gateway, from the public URL of the result store, or from the address
   * to which it was uploaded. An image that is neither stored nor in the event can be read once. Rejects with a `Problem` of the kind `not-found`
   * if it does not exist any more, and with `NotDelivered` if only the submitter knows its address.
   * @param {Variant} variant
   * @param {RequestOptions} options
   * @returns {Promise<Blob>}
   */
  async fetch({ key, data, format, url, put }, { signal } = {}) {
    if (data !== undefined) return new Blob([Uint8Array.from(atob(data), (character) => character.charCodeAt(0))], { type: `image/${format}` });
    let missing;
    try {
      return await this.stored(key, { signal });
    } catch (error) {
      if (!(error instanceof Problem && error.status === 404)) throw error;
      missing = error;
    }
    for (const address of [url, put]) {
      if (address === undefined) continue;
      if (new URL(address).pathname === "/") throw new NotDelivered(`the image was uploaded to a URL of ${address} that only the submitter knows`);
      try {
        return await this.#transport.send(address, { signal });
      } catch (error) {
        if (!(error instanceof Problem)) throw error;
        missing = error;
      }
    }
    throw missing;
  }

  /**
   * Reads a stored result by its key. Rejects with a `Problem` of the kind `not-found` if there is none.
   * @param {string} key
   * @param {RequestOptions} options
   * @returns {Promise<Blob>}
   */
  stored(key, { signal } = {}) {
    // The gateway may redirect to the result store (gateway.redirectsToStore).
    return this.#transport.send(imageTarget(key), { signal, redirects: true });
  }

  /**
   * Reads the image of a job from /v1/render, which renders it if necessary. Problems have the failure code of the job.
   * @param {Job} job
   * @param {RequestOptions} options
   * @returns {Promise<Blob>}
   */
  render(job, { signal } = {}) {
    return this.#transport.send(renderTarget(job), { signal, wait: this.#options.readTimeout });
  }

  /**
   * Reads the facts about the source of a job from /v1/info. No image is rendered.
   * @param {Job} job
   * @param {RequestOptions} options
   * @returns {Promise<import("./types.js").SourceInfo>}
   */
  info(job, { signal } = {}) {
    return this.#json(infoTarget(job), { signal, wait: this.#options.readTimeout });
  }

  // Batches

  /**
   * Submits jobs as a batch, or as a part of one. Invalid jobs are rejected, and reported in `problems`. Rejects with a `Problem` of the kind
   * `conflict` if the batch is closed or belongs to another key, and `bad-request` if no job is valid.
   * @param {Job[]} jobs
   * @param {PartOptions} options
   */
  submitBatch(jobs, options = {}) {
    return this.#createBatch(ndjson(jobs), NDJSON_TYPE, options, (options.first ?? 0) + jobs.length);
  }

  /**
   * Submits a batch of jobs that differ in their sources only.
   * @param {Template} template
   * @param {Source[]} sources
   * @param {PartOptions} options
   */
  submitTemplate(template, sources, options = {}) {
    return this.#createBatch(JSON.stringify({ template, sources }), JSON_TYPE, options, (options.first ?? 0) + sources.length);
  }

  /**
   * Submits a batch of a job for each object whose URL begins with a prefix, `s3://bucket/path/`. A worker lists the objects.
   * @param {Template} template
   * @param {string} prefix
   * @param {BatchOptions} options
   */
  submitPrefix(template, prefix, options = {}) {
    return this.#createBatch(JSON.stringify({ template, prefix }), JSON_TYPE, options, 0);
  }

  /**
   * @param {string} body
   * @param {string} type
   * @param {PartOptions} options
   * @param {number} jobs the number of jobs of the batch so far
   * @returns {Promise<BatchSubmission>}
   */
  async #createBatch(body, type, { signal, id = newID(), ...parameters }, jobs) {
    try {
      return submission(await this.#json(`/v1/batches?${query({ ...parameters, id })}`, { method: "POST", body, type, signal }));
    } catch (error) {
      if (!(error instanceof Problem && error.status === 409 && error.attempts > 1)) throw error;
      // The response to an earlier attempt, which has closed the batch, was lost.
      const { total = 0, prefix } = await this.batch(id, { signal });
      return submission({ id, accepted: total, rejected: Math.max(0, jobs - total), prefix });
    }
  }

  /**
   * The state of a batch.
   * @param {string} id
   * @param {RequestOptions} options
   * @returns {Promise<Batch>}
   */
  batch(id, { signal } = {}) {
    return this.#json(batchTarget(id), { signal });
  }

  /**
   * The newest batches, at most 1000.
   * @param {RequestOptions & {limit?: number}} options
   * @returns {Promise<Batch[]>}
   */
  async batches({ limit = 100, signal } = {}) {
    return (await this.#json(`/v1/batches?limit=${limit}`, { signal })).batches;
  }

  /**
   * The failed jobs of a batch in the order of their ends, without the first `start`. Reads as many pages as needed.
   * @param {string} id
   * @param {RequestOptions & {start?: number, limit?: number}} options
   * @returns {Promise<import("./types.js").BatchFailure[]>}
   */
  async batchFailures(id, { start = 0, limit = 1000, signal } = {}) {
    const failures = [];
    let target = `${batchTarget(id)}/failures?start=${start}&limit=${Math.min(limit, 1000)}`;
    while (target && failures.length < limit) {
      const page = await this.#json(target, { signal });
      failures.push(...page.failures);
      target = page.next;
    }
    return failures.slice(0, limit);
  }

  /**
   * Sets the number of jobs of an open batch.
   * @param {string} id
   * @param {number} total
   * @param {RequestOptions} options
   * @returns {Promise<Batch>}
   */
  closeBatch(id, total, { signal } = {}) {
    return this.#json(`${batchTarget(id)}/close`, { method: "POST", body: JSON.stringify({ total }), type: JSON_TYPE, signal });
  }

  /**
   * Cancels all jobs of a batch that have not ended. Rejects with a `Problem` of the kind `conflict` for a completed batch.
   * @param {string} id
   * @param {RequestOptions} options
   * @returns {Promise<Batch>}
   */
  cancelBatch(id, { signal } = {}) {
    return this.#json(batchTarget(id), { method: "DELETE", signal });
  }

  /**
   * Submits the failed jobs of a completed batch as a new batch, whose id may be given.
   * @param {string} id
   * @param {BatchOptions} options
   * @returns {Promise<BatchSubmission>}
   */
  async retryBatch(id, { signal, id: newBatch = newID(), ...parameters } = {}) {
    const target = `${batchTarget(id)}/retry?${query({ ...parameters, id: newBatch })}`;
    return submission(await this.#json(target, { method: "POST", body: "{}", type: JSON_TYPE, signal }));
  }

  /**
   * Waits until a batch is completed. Rejects with `JobTimeout`.
   * @param {string} id
   * @param {WaitOptions} options
   * @returns {Promise<Batch>}
   */
  async waitForBatch(id, { timeout = this.#options.jobTimeout, signal } = {}) {
    const end = Date.now() + timeout * 1000;
    for (let time = 100; ; time = Math.min(time * 1.5, 2000)) {
      const batch = await this.batch(id, { signal });
      if (batch.state === "completed") return batch;
      const left = end - Date.now();
      if (left <= 0) throw new JobTimeout(`the batch ${id} is not completed after ${timeout} s: ${batch.ended} jobs have ended`);
      await pause(Math.min(time, left), signal);
    }
  }

  // Presets

  /**
   * Registers or replaces a preset. Needs the scope `admin`, like all methods of presets.
   * @param {string} name
   * @param {Template} job the fields of its jobs
   * @param {RequestOptions & {overridable?: (keyof Job)[], version?: number}} options the fields that jobs may set themselves, and the version (the
   *   next one)
   * @returns {Promise<Preset>}
   */
  putPreset(name, job, { overridable = [], version, signal } = {}) {
    return this.#json(presetTarget(name), { method: "PUT", body: JSON.stringify({ job, overridable, version }), type: JSON_TYPE, signal });
  }

  /**
   * A preset.
   * @param {string} name
   * @param {RequestOptions} options
   * @returns {Promise<Preset>}
   */
  preset(name, { signal } = {}) {
    return this.#json(presetTarget(name), { signal });
  }

  /**
   * All presets, ordered by name.
   * @param {RequestOptions} options
   * @returns {Promise<Preset[]>}
   */
  async presets({ signal } = {}) {
    return (await this.#json("/v1/presets", { signal })).presets;
  }

  /**
   * Deletes a preset.
   * @param {string} name
   * @param {RequestOptions} options
   */
  async deletePreset(name, { signal } = {}) {
    await this.#transport.send(presetTarget(name), { method: "DELETE", signal });
  }

  /**
   * Makes the results of a preset again, as a batch. With `reload`, the sources are fetched again.
   * @param {string} name
   * @param {Omit<BatchOptions, "deadline"> & {reload?: boolean}} options
   * @returns {Promise<BatchSubmission>}
   */
  async rerender(name, { signal, id = newID(), ...parameters } = {}) {
    const target = `${presetTarget(name)}/rerender?${query({ ...parameters, id })}`;
    return submission(await this.#json(target, { method: "POST", body: "{}", type: JSON_TYPE, signal }));
  }

  // Events

  /**
   * Yields the events that match all filters, from now on or after a cursor, without end. A connection that breaks is opened again after a delay and
   * resumes: no event is missed or repeated. Throws permanent errors.
   * @param {import("./types.js").EventFilters & RequestOptions & {after?: string}} options `after` is a position, from cursor() or a message
   * @returns {AsyncGenerator<Message, void, undefined>}
   */
  async *events({ after = "", signal, ...filters } = {}) {
    const target = eventsTarget(filters);
    let [cursor, retry, failures] = [after, 2000, 0];
    for (;;) {
      let asked = 0;
      try {
        for await (const { name, data, lastID } of this.#transport.stream(target, cursor, signal)) {
          [cursor, failures] = [lastID, 0];
          if (name === "retry") retry = Number(data);
          else if (name === "gap") yield { gap: String(parse(data).reason ?? data), cursor };
          else if (name !== "id") yield { event: parse(data), cursor };
        }
      } catch (error) {
        if (signal?.aborted || !(error instanceof HalcyonError && error.isTransient)) throw error;
        if (error instanceof Problem) asked = error.retryAfter * 1000;
      }
      await pause(Math.max(asked, jittered(retry, failures++, Math.max(30_000, retry))), signal);
    }
  }

  /**
   * The current position in the stream of events: `events({ after })` yields all later events.
   * @param {RequestOptions} options
   */
  async cursor({ signal } = {}) {
    for await (const { lastID } of this.#transport.stream("/v1/events", "", signal)) if (lastID) return lastID;
    throw new ConnectionFailed("the event stream ended before its first position");
  }

  /**
   * @param {string} target
   * @param {import("./http.js").Request} request
   * @returns {Promise<any>}
   */
  async #json(target, request) {
    return parse(await (await this.#transport.send(target, request)).text());
  }
}

/** @param {string} text */
function parse(text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new InvalidResponse(`the response is not JSON: ${text.slice(0, 200)}`, { cause: error });
  }
}

/** Returns a random id. crypto.randomUUID does not exist on pages without HTTPS and in Node.js 18. */
const newID = () => globalThis.crypto?.randomUUID?.() ?? Array.from({ length: 3 }, () => Math.random().toString(36).slice(2)).join("");

/** @param {object[]} values */
const ndjson = (values) => values.map((value) => `${JSON.stringify(value)}\n`).join("");

/** @param {Record<string, unknown>} parameters */
const query = (parameters) =>
  new URLSearchParams(Object.entries(parameters).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]])));

/** @param {string} id */
const batchTarget = (id) => `/v1/batches/${encodeURIComponent(id)}`;

/** @param {string} name */
const presetTarget = (name) => `/v1/presets/${encodeURIComponent(name)}`;

/**
 * The job with a delivery from which the client can read: stored images need not be in the event too.
 * @param {Job} job
 * @returns {Job}
 */
const byReference = (job) => (job.delivery === "inline" ? { ...job, delivery: "reference" } : job);

/**
 * @param {any} said
 * @returns {AcceptedJob}
 */
const accepted = ({ id, lane, images = [], unknownFields = [] }) => ({
  id,
  lane,
  keys: images.map((/** @type {string} */ path) => decodeURIComponent(path.split("/").pop() ?? "")),
  unknownFields,
});

/**
 * @param {any} said
 * @returns {BatchSubmission}
 */
const submission = ({ id, accepted = 0, rejected = 0, missing = 0, problems = [], prefix, preset }) => ({
  id,
  accepted,
  rejected,
  missing,
  problems: problems.map((/** @type {any} */ { line, problem }) => ({ line, problem: new Problem(problem.status, problem) })),
  prefix,
  preset,
});

/**
 * The data of the event of a job that has ended. Throws the error of another end.
 * @param {string} id
 * @param {import("./types.js").JobState} state
 */
function result(id, { state, event }) {
  switch (event?.type) {
    case "halcyon.image.ready":
      return event.data;
    case "halcyon.image.failed":
      throw new JobFailed(event.data);
    case "halcyon.image.cancelled":
      throw new JobCancelled(id);
    case "halcyon.image.superseded":
      throw new JobSuperseded(id, event.data.supersededBy);
    default:
      throw new InvalidResponse(`the job ${id} has ended as ${state}, and its event is not stored any more`);
  }
}

/**
 * Settles like the promise, or rejects when the signal is aborted.
 * @template T
 * @param {Promise<T>} promise
 * @param {AbortSignal | undefined} signal
 * @returns {Promise<T>}
 */
function unlessAborted(promise, signal) {
  if (!signal) return promise;
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
