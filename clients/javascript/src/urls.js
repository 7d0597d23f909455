// URLs of gateways, and their signatures (docs/access.md).
import { hexadecimal, hmac } from "./sha256.js";

/**
 * @typedef {import("./types.js").Job} Job
 * @typedef {{lifetime?: number, expires?: number}} Validity the seconds for which a URL is valid, or the Unix time until which it is
 */

/**
 * The path and query of /v1/render that returns the image of a job. A preset is part of the path.
 * @param {Job} job
 */
export function renderTarget(job) {
  const { preset, ...fields } = job;
  const name = typeof preset === "object" ? preset.name : preset;
  const path = name === undefined ? "/v1/render" : `/v1/render/preset/${encodeURIComponent(name)}`;
  const parts = Object.entries(fields).filter(([, value]) => value !== undefined);
  return `${path}?${parts.map(([field, value]) => `${field}=${encodeURIComponent(parameter(field, value))}`).join("&")}`;
}

/**
 * The path and query of /v1/info that returns the facts about the source of a job.
 * @param {Job} job
 */
export function infoTarget({ info, ...fields }) {
  const location = typeof info === "object" ? info.location : undefined;
  const parts = Object.entries({ ...fields, location }).filter(([, value]) => value !== undefined);
  return `/v1/info?${parts.map(([field, value]) => `${field}=${encodeURIComponent(parameter(field, value))}`).join("&")}`;
}

/**
 * The path of a stored result.
 * @param {string} key
 */
export const imageTarget = (key) => `/v1/images/${encodeURIComponent(key)}`;

/**
 * The path and query of the event stream with these filters.
 * @param {import("./types.js").EventFilters} filters
 */
export function eventsTarget({ types = [], jobs = [], batches = [], sources = [] } = {}) {
  const query = new URLSearchParams();
  if (types.length) query.set("type", types.join(","));
  for (const job of jobs) query.append("job", job);
  for (const batch of batches) query.append("batch", batch);
  for (const source of sources) query.append("source", source);
  const text = query.toString();
  return `/v1/events${text && `?${text}`}`;
}

/**
 * Signs URLs with a secret of `gateway.urlKeys`. A signed URL gives access to whoever has it, for use on web pages. Keep the secret on servers.
 *
 *     const signer = new URLSigner("https://images.example.org", "1", secret);
 *     const url = signer.render({ source: "https://example.org/cat.jpg", width: 400 }, { lifetime: 3600 });
 */
export class URLSigner {
  #secret;

  /**
   * @param {string} url the URL of the gateway
   * @param {string} keyID
   * @param {string} secret
   */
  constructor(url, keyID, secret) {
    this.url = url.replace(/\/+$/, "");
    this.keyID = keyID;
    this.#secret = new TextEncoder().encode(secret);
  }

  /**
   * The signed URL of a target, such as `/v1/render?…`. Gateways require an expiry, unless `gateway.requiresExpiry` is false.
   * @param {string} target
   * @param {Validity} validity
   */
  sign(target, { lifetime, expires } = {}) {
    const end = expires ?? (lifetime === undefined ? undefined : Math.floor(Date.now() / 1000 + lifetime));
    const signed = `${target}${target.includes("?") ? "&" : "?"}keyId=${encodeURIComponent(this.keyID)}${end === undefined ? "" : `&expires=${end}`}`;
    return `${this.url}${signed}&signature=${hexadecimal(hmac(this.#secret, new TextEncoder().encode(signed)))}`;
  }

  /**
   * The signed URL of the image of a job, which is rendered when it is first requested.
   * @param {Job} job
   * @param {Validity} [validity]
   */
  render(job, validity) {
    return this.sign(renderTarget(job), validity);
  }

  /**
   * The signed URL of the facts about the source of a job.
   * @param {Job} job
   * @param {Validity} [validity]
   */
  info(job, validity) {
    return this.sign(infoTarget(job), validity);
  }

  /**
   * The signed URL of a stored result.
   * @param {string} key
   * @param {Validity} [validity]
   */
  image(key, validity) {
    return this.sign(imageTarget(key), validity);
  }

  /**
   * The signed URL of the event stream, for `EventSource`.
   * @param {import("./types.js").EventFilters} [filters]
   * @param {Validity} [validity]
   */
  events(filters, validity) {
    return this.sign(eventsTarget(filters), validity);
  }
}

/**
 * @param {string} name
 * @param {any} value
 * @returns {string}
 */
function parameter(name, value) {
  if (typeof value === "string") return value;
  if (name === "cropRect") return [value.x, value.y, value.width, value.height, ...(value.unit === "pixels" ? ["pixels"] : [])].join();
  if (name === "gravity" && !value.detect) return `${value.x},${value.y}`;
  if (name === "tags") return value.join();
  if (value instanceof Date) return value.toISOString();
  return JSON.stringify(value);
}
