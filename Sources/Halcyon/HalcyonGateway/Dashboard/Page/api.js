// Requests to the gateway, with the API key if one is set.

const storage = "halcyon.key";

/** An error response of the gateway (RFC 9457), with `status`. */
export class Refusal extends Error {
  constructor(status, text, retryAfter) {
    super(text);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

export const setKey = (key) => sessionStorage.setItem(storage, key);
export const hasKey = () => sessionStorage.getItem(storage) !== null;

/**
 * Sends a request and returns a successful response. The key is sent in a header, so that it appears in no log and no address bar.
 * @throws {Refusal}
 */
export async function request(path, { headers = {}, ...options } = {}) {
  const key = sessionStorage.getItem(storage);
  const response = await fetch(path, {
    ...options,
    headers: key === null ? headers : { ...headers, "X-API-Key": key },
    credentials: "omit",
  });
  if (response.ok) return response;
  const problem = await response.json().catch(() => ({}));
  throw new Refusal(
    response.status, problem.detail ?? problem.title ?? `the gateway responded with status ${response.status}`,
    Number(response.headers.get("Retry-After")) || 0);
}

const encoded = encodeURIComponent;
const json = async (path, options) => (await request(path, options)).json();
const post = (path, body) => json(path, {
  method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
});

/** Returns a path with a query of the members that have a value. */
function withQuery(path, values) {
  const query = new URLSearchParams(Object.entries(values).filter(([, value]) => value !== undefined && value !== ""));
  return query.size === 0 ? path : `${path}?${query}`;
}

/** True for a response to a key that may not do what was requested. */
export const isRefusal = (error) => error.status === 401 || error.status === 403;

export const imagePath = (key) => `/v1/images/${encoded(key)}`;

/** Returns the name and the scopes of the key. */
export const access = () => json("/v1/access");
/** Returns the figures and groups of failures of the last seconds. */
export const history = (seconds) => json(withQuery("/v1/history", { seconds }));

export const submit = (job) => post("/v1/jobs", job);
/** Returns the jobs whose events match: `jobs`, and `more` if there are others. */
export const searchJobs = (filters) => json(withQuery("/v1/history/jobs", filters));
/** Returns the oldest jobs in flight on all workers. */
export const jobsInFlight = (limit) => json(withQuery("/v1/jobs", { limit }));
export const jobHistory = (id) => json(`/v1/history/jobs/${encoded(id)}`);
export const jobMessage = (id) => json(`/v1/history/jobs/${encoded(id)}/message`);
export const jobState = (id) => json(`/v1/jobs/${encoded(id)}`);
export const cancelJob = (id) => json(`/v1/jobs/${encoded(id)}`, { method: "DELETE" });
/** Returns the terminal event of a job, if it has ended and the gateway still stores its state. */
export const ending = async (id) => (await jobState(id)).event;

/** Returns the oldest dead letters that match: `letters`, and `next` if there are more. */
export const deadLetters = (filters) => json(withQuery("/v1/dead", filters));
export const deadLetter = (letter) => json(`/v1/dead/${encoded(letter)}`);
/** Replays or discards dead letters. The action is "replay" or "discard", and the target has `letters`, or `filter` and `limit`. */
export const settle = (action, target) => post(`/v1/dead/${action}`, target);

/** Returns the newest batches, running and completed ones. */
export const newestBatches = async (limit) => (await json(withQuery("/v1/batches", { limit }))).batches;
export const batchFailures = (id, limit) => json(withQuery(`/v1/batches/${encoded(id)}/failures`, { limit }));
export const cancelBatch = (id) => json(`/v1/batches/${encoded(id)}`, { method: "DELETE" });

/** Returns the paused lanes and tenants. */
export const paused = () => json("/v1/paused");
/** Pauses or resumes a lane or a tenant. The kind is "lanes" or "tenants". */
export const setPaused = (kind, name, isPaused) =>
  request(`/v1/paused/${kind}/${encoded(name)}`, { method: isPaused ? "PUT" : "DELETE" });

export const purge = (target) => post("/v1/purge", target);
export const cancelJobs = (target) => post("/v1/cancel", target);
