// The event stream. It uses fetch, because an EventSource cannot send a key. It reconnects and resumes as an EventSource would.

import { request } from "./api.js";

const types = "ready,failed,cancelled,superseded";
/** The gateway sends a keep-alive every 15 s. Without one for this time, in ms, the connection counts as broken. */
const patience = 40_000;
const longestPause = 30_000;

/** Reads `text/event-stream` (HTML Living Standard, 9.2.6) from chunks of text. */
export class EventParser {
  #rest = "";
  #event = { data: [], type: "" };
  #afterReturn = false;
  lastId = "";
  retry = 2000;

  /** Returns the events, with `type` and `data`, that this chunk completes. */
  push(chunk) {
    const events = [];
    // A line feed directly after a carriage return does not end another line.
    if (this.#afterReturn && chunk.startsWith("\n")) chunk = chunk.slice(1);
    if (chunk !== "") this.#afterReturn = chunk.endsWith("\r");
    const lines = (this.#rest + chunk).split(/\r\n|\n|\r/);
    this.#rest = lines.pop();
    for (const line of lines) {
      if (line !== "") { this.#take(line); continue; }
      const { data, type } = this.#event;
      this.#event = { data: [], type: "" };
      if (data.length > 0) events.push({ type: type || "message", data: data.join("\n") });
    }
    return events;
  }

  #take(line) {
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    if (name === "data") this.#event.data.push(value);
    else if (name === "event") this.#event.type = value;
    else if (name === "id") this.lastId = value;
    else if (name === "retry" && /^\d+$/.test(value)) this.retry = Number(value);
  }
}

/**
 * Receives events until the page is closed.
 *
 * `hears` is called with each event. `tells` is called with a state ("waiting", "live", "away", "refused") and its text. `live` includes
 * whether events may have been missed, and how far the gateway's clock is ahead, in ms.
 */
export class EventStream {
  #lastId = "";
  #failures = 0;
  #wake = () => {};
  #hears;
  #tells;
  #path;

  /** @param path - the path of the stream; by default that of terminal events. */
  constructor({ path = `/v1/events?type=${types}`, hears, tells }) {
    this.#path = path;
    this.#hears = hears;
    this.#tells = tells;
  }

  async run() {
    for (;;) {
      let [reason, pause] = ["the gateway closed the stream", 0];
      try {
        await this.#follow();
      } catch (error) {
        reason = error.status === undefined ? "the gateway is unreachable" : error.message;
        pause = 1000 * (error.retryAfter ?? 0);
        // A position that this gateway rejects belongs to another cluster.
        if (error.status === 400) this.#lastId = "";
        if (error.status === 401 || error.status === 403) {
          this.#tells("refused", error.status === 401 ? "API key required" : `Not allowed: ${reason}`, { status: error.status });
          await new Promise((resolve) => { this.#wake = resolve; });
          continue;
        }
      }
      // Full jitter, so that not all pages reconnect at the same time.
      const backoff = Math.min(longestPause, 1000 * 2 ** this.#failures++);
      pause = Math.max(pause, 250 + Math.random() * backoff);
      this.#tells("away", `Not connected: ${reason}. Reconnecting in ${Math.ceil(pause / 1000)} s`);
      await new Promise((resolve) => { this.#wake = resolve; setTimeout(resolve, pause); });
    }
  }

  /** Reconnects immediately, for example after the key was changed. */
  retryNow() { this.#wake(); }

  async #follow() {
    const control = new AbortController();
    let watch = 0;
    const expectMore = () => {
      clearTimeout(watch);
      watch = setTimeout(() => control.abort(), patience);
    };
    const resumed = this.#lastId !== "";
    const parser = new EventParser();
    parser.lastId = this.#lastId;
    expectMore();
    try {
      const response = await request(this.#path, {
        headers: resumed ? { "Last-Event-ID": this.#lastId } : {}, signal: control.signal, cache: "no-store",
      });
      const ahead = Date.parse(response.headers.get("Date") ?? "") - Date.now() || 0;
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let isLive = false;
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        expectMore();
        const events = parser.push(value);
        this.#lastId = parser.lastId;
        // Before the first id, the gateway has not caught up with the events.
        if (!isLive && (this.#lastId !== "" || events.length > 0)) {
          [isLive, this.#failures] = [true, 0];
          this.#tells("live", "Live", { mayHaveMissed: !resumed, ahead });
        }
        for (const event of events) this.#hear(event);
      }
    } finally {
      clearTimeout(watch);
      control.abort();
    }
  }

  #hear({ type, data }) {
    if (type === "gap") {
      this.#tells("live", "Live; some events were missed", { mayHaveMissed: true });
      return;
    }
    let event;
    try { event = JSON.parse(data); } catch { return; }
    if (typeof event?.type === "string" || type === "cluster") this.#hears(event);
  }
}
