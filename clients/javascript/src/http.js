// Requests with retries, and the parsing of event streams.
import { ConnectionFailed, HalcyonError, InvalidResponse, Problem, TooLarge } from "./errors.js";

/**
 * @typedef {object} Request
 * @property {string} [method]
 * @property {string | Uint8Array} [body]
 * @property {string} [type] the media type of the body
 * @property {Record<string, string>} [headers]
 * @property {AbortSignal} [signal]
 * @property {number} [wait] the seconds for which the server may delay the response
 * @property {number} [until] the time in milliseconds since 1970 at which retries end
 * @property {boolean} [redirects] whether a redirect to another server is followed, without the key
 *
 * @typedef {{name: string, data: string, lastID: string}} Item a complete event. `name` is `id` if only the position changed, and `retry` for the
 *   reconnection time in milliseconds
 */

/** Sends requests to a gateway. */
export class Transport {
  /**
   * @param {string} url
   * @param {Required<Omit<import("./types.js").Options, "key">> & {key?: string}} options
   */
  constructor(url, options) {
    this.url = url.replace(/\/+$/, "");
    this.options = options;
  }

  /**
   * Sends a request until it succeeds, for up to `retryTimeout` after the first failure.
   * @param {string} target a path of the gateway, or an absolute URL of another server, which does not receive the key
   * @param {Request} [request]
   * @returns {Promise<Blob>} the body of the response
   */
  async send(target, request = {}) {
    let end = request.until;
    for (let failures = 1; ; failures++) {
      try {
        return await this.#once(target, request);
      } catch (error) {
        if (request.signal?.aborted || !(error instanceof HalcyonError)) throw error;
        if (error instanceof Problem) error.attempts = failures;
        if (!error.isTransient) throw error;
        if (failures === 1) end = Math.min(end ?? Infinity, Date.now() + this.options.retryTimeout * 1000);
        const time = Math.max(error instanceof Problem ? error.retryAfter * 1000 : 0, jittered(200, failures - 1, 30_000));
        if (Date.now() + time >= (end ?? 0)) throw error;
        await pause(time, request.signal);
      }
    }
  }

  /**
   * @param {string} target
   * @param {Request} request
   */
  async #once(target, request) {
    /** @type {Uint8Array[]} */
    const parts = [];
    let [size, type] = [0, ""];
    for await (const part of this.open(target, request, (headers) => (type = headers.get("Content-Type") ?? ""))) {
      size += part.length;
      if (size > this.options.maximumBytes) throw new TooLarge(`a response of more than ${this.options.maximumBytes} bytes`);
      parts.push(part);
    }
    return new Blob(parts, { type });
  }

  /**
   * Sends a request once and yields the parts of the response. Closes the connection when the iteration ends. Unread parts stay in the connection.
   * @param {string} target
   * @param {Request} request
   * @param {(headers: Headers) => void} [begin] receives the headers of a successful response
   * @returns {AsyncGenerator<Uint8Array, void, undefined>}
   */
  async *open(target, { method = "GET", body, type, headers = {}, signal, wait = 0, redirects = false }, begin) {
    signal?.throwIfAborted();
    const exchange = new AbortController();
    const abort = () => exchange.abort(signal?.reason);
    signal?.addEventListener("abort", abort);
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    const alive = () => {
      clearTimeout(timer);
      const limit = this.options.readTimeout + wait;
      timer = setTimeout(() => exchange.abort(new ConnectionFailed(`no data for ${limit} s`)), limit * 1000);
    };
    const toGateway = target.startsWith("/");
    /** @param {RequestRedirect} redirect */
    const ask = (redirect) =>
      fetch(toGateway ? this.url + target : target, {
        method,
        body,
        headers: {
          ...headers,
          ...(type && { "Content-Type": type }),
          ...(toGateway && this.options.key && { Authorization: `Bearer ${this.options.key}` }),
        },
        signal: exchange.signal,
        redirect,
        credentials: "omit",
        cache: "no-store",
      });
    try {
      alive();
      // The key must not be sent to other servers.
      let answer = await ask(toGateway ? (redirects ? "manual" : "error") : "follow");
      // Browsers hide the location. They follow a redirect to another origin without the key.
      if (answer.type === "opaqueredirect") answer = await ask("follow");
      if (redirects && answer.status === 302) {
        clearTimeout(timer);
        return yield* this.open(redirectTarget(answer), { signal }, begin);
      }
      if (!answer.ok) {
        const seconds = Number(answer.headers.get("Retry-After"));
        throw new Problem(answer.status, await answer.json().catch(() => undefined), seconds > 0 ? Math.min(seconds, 86_400) : 0);
      }
      begin?.(answer.headers);
      const reader = answer.body?.getReader();
      for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) {
        clearTimeout(timer); // The reader of this generator may take its time.
        yield part.value;
        alive();
      }
    } catch (error) {
      // Some implementations of fetch do not throw the reason.
      if (exchange.signal.aborted) throw exchange.signal.reason;
      // fetch reports errors of connections as TypeError.
      throw error instanceof TypeError ? new ConnectionFailed(describe(error), { cause: error }) : error;
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
      exchange.abort();
    }
  }

  /**
   * Yields the complete events of one connection (HTML Living Standard, 9.2.6).
   * @param {string} target
   * @param {string} lastID
   * @param {AbortSignal | undefined} signal
   * @returns {AsyncGenerator<Item, void, undefined>}
   */
  async *stream(target, lastID, signal) {
    const headers = { Accept: "text/event-stream", ...(lastID && { "Last-Event-ID": lastID }) };
    const decoder = new TextDecoder();
    /** @type {string[]} */
    let data = [];
    let [rest, name, size, id] = ["", "message", 0, lastID];
    for await (const part of this.open(target, { headers, signal })) {
      const lines = (rest + decoder.decode(part, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines.map((text) => text.replace(/\r$/, ""))) {
        const [, field, value] = /** @type {RegExpExecArray} */ (/^([^:]*):? ?(.*)$/s.exec(line));
        if (line === "") {
          lastID = id;
          yield { name: data.length ? name : "id", data: data.join("\n"), lastID };
          [name, data, size] = ["message", [], 0];
        } else if (field === "data") {
          data.push(value);
          size += value.length;
        } else if (field === "event") name = value;
        else if (field === "id" && !value.includes("\0")) id = value;
        else if (field === "retry" && /^\d{1,9}$/.test(value)) yield { name: "retry", data: value, lastID };
      }
      if (size + rest.length > this.options.maximumBytes) throw new TooLarge(`an event of more than ${this.options.maximumBytes} bytes`);
    }
  }
}

/**
 * The pause after a number of failures in milliseconds: exponential, and random so that clients do not retry together.
 * @param {number} base
 * @param {number} failures
 * @param {number} longest
 */
export const jittered = (base, failures, longest) => Math.min(base * 2 ** Math.min(failures, 16), longest) * (1 + Math.random() / 2);

/**
 * Waits for a time in milliseconds. Rejects at once when the signal is aborted.
 * @param {number} time
 * @param {AbortSignal} [signal]
 * @returns {Promise<void>}
 */
export function pause(time, signal) {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const abort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, Math.max(0, time));
    signal?.addEventListener("abort", abort, { once: true });
  });
}

/**
 * The target of a redirect. It must be absolute, because a path would be requested from the gateway, with the key.
 * @param {Response} answer
 */
function redirectTarget(answer) {
  const target = answer.headers.get("Location") ?? "";
  if (!/^https?:\/\//.test(target)) throw new InvalidResponse(`redirected to ${JSON.stringify(target)}, which is not an HTTP URL`);
  return target;
}

/** @param {Error} error */
const describe = (error) => (error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message);
