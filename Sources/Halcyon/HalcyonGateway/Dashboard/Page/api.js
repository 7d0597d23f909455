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

export const imagePath = (key) => `/v1/images/${encodeURIComponent(key)}`;

/** Submits a job. */
export async function submit(job) {
  const response = await request("/v1/jobs", postJSON(job));
  return response.json();
}

const postJSON = (body) => ({
  method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
});

/** Returns the oldest dead letters that were not replayed: `letters`, and `next` if there are more. */
export const deadLetters = async (limit) => (await request(`/v1/dead?limit=${limit}`)).json();

/** Replays a dead letter: sends it back to its original topic. */
export const replay = async (letter) => (await request("/v1/dead/replay", postJSON({ letters: [letter] }))).json();

/** Returns the newest batches, running and completed ones. */
export const newestBatches = async (limit) => (await (await request(`/v1/batches?limit=${limit}`)).json()).batches;

/** Returns the terminal event of a job, if it has ended and the gateway still stores its state. */
export async function ending(id) {
  const state = await (await request(`/v1/jobs/${encodeURIComponent(id)}`)).json();
  return state.event;
}
