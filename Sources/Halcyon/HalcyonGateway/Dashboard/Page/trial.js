// The form to try a job, and its result.

import { allows, guard, onAccess, reason } from "./access.js";
import { byId, element, say } from "./elements.js";
import { originName, shortened } from "./format.js";
import { ending, submit } from "./api.js";
import { altText } from "./gallery.js";
import { Picture, sizes } from "./pictures.js";
import { go, jobLink } from "./views.js";
import { waterfall } from "./waterfall.js";

/** The maximum number of jobs of this page that are stored, so that they can be retried. */
const mostJobs = 100;
/** The maximum number of images shown for one job. */
const mostPictures = 8;

/** Creates a job id of random bytes. `crypto.randomUUID` is unavailable on pages without TLS. */
function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return `dashboard-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

function object(text, name) {
  let value;
  try { value = JSON.parse(text); } catch (error) { throw new Error(`${name}: ${error.message}`); }
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    throw new Error(`${name}: expected an object, such as {"maxAge": 60}`);
  }
  return value;
}

/** Formats warnings as a sentence that follows another one. */
function warning(texts) {
  return texts?.length > 0 ? ` Warning: ${shortened(texts.join(", "), 500)}.` : "";
}

export class Trial {
  /** Jobs by id, newest last. */
  #jobs = new Map();
  #awaited;
  #pictures = [];

  constructor() {
    byId("job").addEventListener("submit", (event) => {
      event.preventDefault();
      try { this.submit(this.#read()); } catch (error) { this.#say(`Not submitted: ${error.message}`, "failed"); }
    });
    onAccess(() => {
      guard(byId("job").querySelector("button[type=submit]"), "submit");
      say(byId("trial-reason"), allows("submit") ? "" : reason("submit"));
    });
  }

  /** Returns a job of this page without its id; undefined for other jobs. */
  job(id) { return this.#jobs.get(id); }

  /** Copies a source, or the fields of a job, to the form, and shows it. */
  fill(source, { width, height, contentMode, format, ...more } = {}) {
    go("overview");
    byId("source").value = typeof source === "string" ? source : JSON.stringify(source);
    const fields = { width, height, contentMode, format };
    // A new size is expected if only the source is known.
    if (Object.values(fields).some((value) => value !== undefined) || Object.keys(more).length > 0) {
      for (const [name, value] of Object.entries(fields)) byId(name).value = value ?? "";
      byId("more").value = Object.keys(more).length > 0 ? JSON.stringify(more, null, 2) : "";
      byId("more").closest("details").open = Object.keys(more).length > 0;
    }
    byId("source").focus();
    this.#say("The source was copied to the form. Check the size and submit.");
  }

  #read() {
    const source = byId("source").value.trim();
    const job = { source: source.startsWith("{") ? object(source, "source") : source };
    for (const name of ["width", "height"]) if (byId(name).value !== "") job[name] = byId(name).valueAsNumber;
    for (const name of ["contentMode", "format"]) if (byId(name).value !== "") job[name] = byId(name).value;
    const more = byId("more").value.trim();
    if (more !== "") Object.assign(job, object(more, "More fields"));
    if (job.source === "") throw new Error("enter a source");
    return job;
  }

  /** Submits a job and shows its result. Results of earlier jobs are no longer shown. */
  async submit(job) {
    // An id in the job is used the first time. The same id twice would be answered by the event of the first job.
    const id = typeof job.id === "string" && !this.#jobs.has(job.id) ? job.id : newId();
    this.#jobs.set(id, job);
    if (this.#jobs.size > mostJobs) this.#jobs.delete(this.#jobs.keys().next().value);
    this.#awaited = id;
    this.#clear();
    this.#say("Submitting…");
    try {
      const { unknownFields } = await submit({ ...job, id });
      if (this.#awaited !== id) return;
      this.#say(`Submitted, waiting for its event.${warning(unknownFields?.map((name) => `unknown field "${name}"`))}`);
    } catch (error) {
      if (this.#awaited !== id) return;
      this.#awaited = undefined;
      this.#say(`Not submitted: ${error.message}`, "failed");
    }
  }

  /** Requests the state of the pending job, if its event may have been missed. */
  async catchUp() {
    if (this.#awaited === undefined) return;
    // If this fails, the event stream may still deliver the event.
    const event = await ending(this.#awaited).catch(() => undefined);
    if (event !== undefined) this.hear(event);
  }

  hear(event) {
    if (this.#awaited === undefined || event.data?.job?.id !== this.#awaited) return;
    const end = event.type.replace("halcyon.image.", "");
    if (!["ready", "failed", "cancelled", "superseded"].includes(end)) return;
    this.#awaited = undefined;
    if (end === "ready") {
      const { origin, warnings, fallback } = event.data;
      const reason = fallback === undefined
        ? "" : ` This is the fallback picture, ${fallback.code}: ${shortened(String(fallback.message), 500)}`;
      this.#say(`Ready, from ${originName(origin)}.${reason}${warning(warnings)}`);
      this.#show(event);
    } else {
      const { code, message } = event.data;
      this.#say(end === "failed" ? `Failed, ${code}: ${shortened(String(message), 500)}` : `The job was ${end}.`, "failed");
    }
    if (event.data.timings) byId("trial-result").append(waterfall(event.data.timings));
    byId("trial-result").append(element("p", { className: "hint" }, jobLink(event.data.job.id, "Open the page of this job")));
  }

  #show(event) {
    for (const variant of event.data.variants.slice(0, mostPictures)) {
      const picture = new Picture(variant, altText(event), { isOwn: true });
      this.#pictures.push(picture);
      byId("trial-result").append(
        element("figure", {}, picture.element, element("figcaption", {}, sizes(variant))));
      picture.load();
    }
  }

  #clear() {
    for (const picture of this.#pictures.splice(0)) picture.close();
    byId("trial-result").replaceChildren();
  }

  #say(text, state = "") {
    byId("trial-status").dataset.state = state;
    say(byId("trial-status"), text);
  }
}
