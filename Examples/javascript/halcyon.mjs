// A client for Halcyon gateways in browsers and Node 18 or newer. It is a single file without dependencies.
//
//     const halcyon = new Halcyon("http://127.0.0.1:8080", { key });
//     const picture = await halcyon.image({ source: "https://example.org/cat.jpg", width: 400 });

const ENDS = ["ready", "failed", "cancelled", "superseded"];

/** An error response of the gateway (RFC 9457). */
export class Problem extends Error {
  constructor(status, said, retryAfter = 0) {
    super(`${said.title ?? "HTTP status"} (${status}): ${said.detail ?? ""}`);
    this.name = "Problem";
    this.status = status;
    this.kind = (said.type ?? "").replace("/problems/", "");
    this.detail = said.detail;
    this.code = said.code;
    this.retryAfter = retryAfter;
  }

  get isTransient() {
    return [408, 429, 502, 503, 504].includes(this.status);
  }
}

/** The job ended without an image; `event` is its terminal event. */
export class JobEnded extends Error {
  constructor(event) {
    super([event.type.split(".").pop(), event.data.code, event.data.message].filter(Boolean).join(": "));
    this.name = "JobEnded";
    this.event = event;
    this.code = event.data.code;
  }
}

/** A response or an event exceeds the size limit of the client. */
export class TooLarge extends Error {}

/** The read timeout of a connection has expired. */
class Silence extends Error {}

/** A client for a cluster, connected to one of its gateways. */
export class Halcyon {
  /**
   * @param {string} url URL of the gateway
   * @param {object} options key: API key; retryTimeout: seconds for which failed requests are retried; jobTimeout: seconds to wait for the end
   *   of a job; readTimeout: seconds without data after which a connection counts as lost; maximumBytes: size limit of an image or an event
   */
  constructor(url, { key, retryTimeout = 30, jobTimeout = 300, readTimeout = 60, maximumBytes = 64 << 20 } = {}) {
    Object.assign(this, { url: url.replace(/\/+$/, ""), key, retryTimeout, jobTimeout, readTimeout, maximumBytes });
  }

  /** Submits a job. When this returns, Kafka has stored the job. Without a response, the request is retried with the same id. */
  async submit(job) {
    const body = JSON.stringify({ id: newID(), ...job });
    return json(await this.#ask("/v1/jobs", { method: "POST", body, headers: { "Content-Type": "application/json" } }));
  }

  /** Returns `{id, state, event}`. With `wait`, waits up to that number of seconds for the end of the job. */
  async state(id, { wait = 0, signal } = {}) {
    return json(await this.#ask(`/v1/jobs/${encodeURIComponent(id)}?wait=${wait}`, { signal }, wait));
  }

  /** Waits for the event `ready` of a job and returns it. Throws JobEnded for any other terminal event. */
  async wait(id, { signal } = {}) {
    const end = Date.now() + this.jobTimeout * 1000;
    for (let begun = Date.now(); begun < end; begun = Date.now()) {
      const { state, event } = await this.state(id, { wait: Math.min(25, (end - begun) / 1000), signal });
      if (state === "ready" && event) return event;
      if (ENDS.includes(state)) throw new JobEnded(event ?? { type: `halcyon.image.${state}`, data: {} });
      // Limits the request rate if the gateway does not support waiting.
      await pause(250 - (Date.now() - begun), signal);
    }
    throw new DOMException(`the job ${id} has not ended in time`, "TimeoutError");
  }

  /** Submits a job, waits for its end and returns its first image as a Blob. Cancels the job on an abort or timeout. */
  async image(job, { signal } = {}) {
    signal?.throwIfAborted();
    const { id } = await this.submit({ ...job, delivery: "reference" });
    let event;
    try {
      event = await this.wait(id, { signal });
    } catch (error) {
      if (signal?.aborted || error.name === "TimeoutError") await this.cancel(id).catch(() => {});
      throw error;
    }
    return this.delivered(event.data.variants[0], { signal });
  }

  /**
   * Returns the image of a variant of an event `ready` as a Blob. Reads it from the event if it is not stored, otherwise from the gateway. An
   * image that is neither stored nor small enough for an event can be read once.
   */
  async delivered({ key, data, format }, { signal } = {}) {
    if (data === undefined) return this.stored(key, { signal });
    return new Blob([Uint8Array.from(atob(data), (character) => character.charCodeAt(0))], { type: `image/${format}` });
  }

  /** Returns a stored result as a Blob. Throws a Problem of the kind "not-found" if it does not exist or has expired. */
  async stored(key, { signal } = {}) {
    const { bytes, type } = await this.#ask(`/v1/images/${encodeURIComponent(key)}`, { signal });
    return new Blob([bytes], { type });
  }

  /** Cancels a job. Returns false if it has already ended. */
  async cancel(id) {
    try {
      await this.#ask(`/v1/jobs/${encodeURIComponent(id)}`, { method: "DELETE" });
      return true;
    } catch (error) {
      if (error.status === 409) return false;
      throw error;
    }
  }

  /**
   * Yields events from now on or after a `cursor`, as `{event, gap, cursor}`. `gap` is set if events before the next one are missing. After a
   * connection loss, the stream resumes at its cursor, without missing or duplicate events.
   */
  async *events({ types = [], jobs = [], sources = [], after = "", signal } = {}) {
    const query = new URLSearchParams();
    if (types.length) query.set("type", types.join(","));
    for (const job of jobs) query.append("job", job);
    for (const source of sources) query.append("source", source);
    let [cursor, retry, failures] = [after, 2000, 0];
    for (;;) {
      let asked = 0;
      try {
        for await (const message of this.#stream(`/v1/events?${query}`, cursor, signal)) {
          [cursor, failures] = [message.cursor, 0];
          if (message.name === "retry") retry = Number(message.data);
          else if (message.name === "gap") yield { gap: JSON.parse(message.data).reason, cursor };
          else if (message.name !== "id") yield { event: JSON.parse(message.data), cursor };
        }
      } catch (error) {
        if (signal?.aborted || !passes(error)) throw error;
        asked = (error.retryAfter ?? 0) * 1000;
      }
      await pause(Math.max(asked, jittered(retry, failures++, Math.max(30_000, retry))), signal);
    }
  }

  /** Returns the current position of the event stream. `events({after})` yields all events after it. */
  async cursor({ signal } = {}) {
    for await (const { cursor } of this.#stream("/v1/events", "", signal)) if (cursor) return cursor;
    throw new TypeError("the event stream ended before it sent a cursor");
  }

  /** Yields the complete events of one connection. Unread data stays in the connection and is not buffered in memory. */
  async *#stream(target, cursor, signal) {
    const headers = { Accept: "text/event-stream", ...(cursor && { "Last-Event-ID": cursor }) };
    for await (const { name, data, cursor: at } of this.#parts(target, { headers, signal }, 0, (parts) => lines(parts, this.maximumBytes, cursor)))
      yield { name, data, cursor: at };
  }

  async #ask(target, init, more = 0) {
    let end;
    for (let failures = 0; ; failures++) {
      try {
        let [bytes, size, type] = [[], 0, ""];
        for await (const part of this.#parts(target, init, more, (parts, head) => ((type = head.get("Content-Type") ?? ""), parts))) {
          if ((size += part.length) > this.maximumBytes) throw new TooLarge(`more than ${this.maximumBytes} bytes`);
          bytes.push(part);
        }
        return { bytes: await new Blob(bytes).arrayBuffer(), type };
      } catch (error) {
        if (init.signal?.aborted || !passes(error)) throw error;
        end ??= Date.now() + this.retryTimeout * 1000;
        const time = Math.max((error.retryAfter ?? 0) * 1000, jittered(200, failures, 30_000));
        if (Date.now() + time >= end) throw error;
        await pause(time, init.signal);
      }
    }
  }

  /** Sends a request and yields the items that `read` produces from the chunks of the response. Closes the connection when iteration ends. */
  async *#parts(target, init, more, read) {
    const exchange = new AbortController();
    const abort = () => exchange.abort(init.signal.reason);
    init.signal?.throwIfAborted();
    init.signal?.addEventListener("abort", abort);
    let timer;
    const alive = () => {
      clearTimeout(timer);
      timer = setTimeout(() => exchange.abort(new Silence("read timeout: no data received")), (this.readTimeout + more) * 1000);
    };
    try {
      alive();
      const headers = { ...init.headers, ...(this.key && { Authorization: `Bearer ${this.key}` }) };
      const answer = await fetch(this.url + target, { ...init, headers, signal: exchange.signal, redirect: "error", cache: "no-store" });
      if (!answer.ok) {
        const said = await answer.json().catch(() => ({}));
        throw new Problem(answer.status, said, Number(answer.headers.get("Retry-After")) || 0);
      }
      const parts = (async function* () {
        const reader = answer.body.getReader();
        for (let part = await reader.read(); !part.done; part = await reader.read()) {
          clearTimeout(timer); // The read timeout does not apply while the consumer is busy.
          yield part.value;
          alive();
        }
      })();
      yield* read(parts, answer.headers);
    } catch (error) {
      throw exchange.signal.aborted ? exchange.signal.reason : error; // Some implementations of fetch do not throw the abort reason.
    } finally {
      clearTimeout(timer);
      init.signal?.removeEventListener("abort", abort);
      exchange.abort();
    }
  }
}

/** Parses Server-Sent Events (HTML Living Standard, 9.2.6). The name "id" means that only the cursor changed, "retry" sets the reconnection time. */
async function* lines(parts, limit, cursor) {
  const decoder = new TextDecoder();
  let [text, name, data, size, id] = ["", "message", [], 0, cursor];
  for await (const part of parts) {
    text += decoder.decode(part, { stream: true });
    let start = 0;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", start)) {
      const line = text.slice(start, end).replace(/\r$/, "");
      start = end + 1;
      const [, field, value] = /^([^:]*):? ?(.*)$/s.exec(line);
      if (line === "") {
        cursor = id;
        yield { name: data.length ? name : "id", data: data.join("\n"), cursor };
        [name, data, size] = ["message", [], 0];
      } else if (field === "data") {
        data.push(value);
        size += value.length;
      } else if (field === "event") name = value;
      else if (field === "id") id = value;
      else if (field === "retry" && /^\d{1,9}$/.test(value)) yield { name: "retry", data: value, cursor };
    }
    text = text.slice(start);
    if (size + text.length > limit) throw new TooLarge(`an event of more than ${limit} bytes`);
  }
}

/** Returns a random job id. crypto.randomUUID is not available on plain HTTP pages and in Node 18. */
const newID = () => [1, 2, 3].map(() => Math.random().toString(36).slice(2)).join("");

/** True if a retry may succeed. fetch reports connection errors as TypeError. */
const passes = (error) => error instanceof Problem ? error.isTransient : error instanceof TypeError || error instanceof Silence;
const jittered = (base, failures, longest) => Math.min(base * 2 ** Math.min(failures, 16), longest) * (1 + Math.random() / 2);
const json = ({ bytes }) => JSON.parse(new TextDecoder().decode(bytes));

/** Waits for a time in milliseconds. Throws immediately on an abort. */
function pause(time, signal) {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const abort = () => (clearTimeout(timer), reject(signal.reason));
    const timer = setTimeout(() => (signal?.removeEventListener("abort", abort), resolve()), Math.max(0, time));
    signal?.addEventListener("abort", abort, { once: true });
  });
}
