// The page of one job: its fields, stages, attempts, events and images, and how to submit it again.

import { cancelJob, deadLetter, deadLetters, isRefusal, jobHistory, jobMessage, jobState } from "./api.js";
import { allows, guard } from "./access.js";
import { badge, button, byId, codeBlock, confirmed, element, row, say } from "./elements.js";
import { dateTime, duration, originName, shortened, timeOfDay } from "./format.js";
import { altText } from "./gallery.js";
import { Picture, sizes } from "./pictures.js";
import { commands } from "./reproduce.js";
import { address } from "./views.js";
import { waterfall } from "./waterfall.js";

/** The maximum number of images shown. */
const mostPictures = 8;
const terminal = ["ready", "failed", "cancelled", "superseded"];

/** Creates a section of the page. */
const card = (title, ...children) => element("section", {}, element("h3", {}, title), ...children);

/** Creates a block with an event, which can be closed. */
function eventBlock(event, isOpen) {
  const name = `${shortened(String(event.type), 60)}, ${dateTime(event.time)}`;
  return element("details", { open: isOpen }, element("summary", {}, name), codeBlock(name, JSON.stringify(event, null, 2)));
}

export class JobPage {
  #id;
  #shown = "";
  #pictures = [];
  #trial;
  #number = 0;

  /** @param trial - the form, to which a job can be copied. */
  constructor(trial) { this.#trial = trial; }

  open({ id }) {
    if (id !== this.#id) {
      this.#clear();
      say(byId("job-title"), shortened(id, 200));
      say(byId("job-status"), "Loading…");
    }
    [this.#id, this.#shown] = [id, ""];
    return this.refresh();
  }

  /** Reloads the job until it has ended. */
  async refresh() {
    const id = this.#id;
    if (terminal.includes(this.#shown.split(" ")[0])) return;
    const number = ++this.#number;
    const found = await this.#load(id).catch((error) => ({ error }));
    if (number !== this.#number || id !== this.#id) return;
    if (found.error !== undefined) {
      if (this.#shown === "") say(byId("job-status"), found.error.status === 404
        ? "This job is unknown: its events are older than the history of this gateway, it was not submitted over HTTP, or the id is wrong."
        : `The job cannot be loaded: ${found.error.message}`);
      return;
    }
    const shown = `${found.state} ${found.events.length}`;
    if (shown === this.#shown) return;
    this.#shown = shown;
    await this.#show(id, found);
  }

  /** Loads the events from the history of the gateway, or else the state that is stored in Redis. */
  async #load(id) {
    const history = await jobHistory(id).catch((error) => {
      if (error.status !== 404) throw error;
    });
    if (history !== undefined) return { ...history, state: history.states.at(-1).state };
    const { state, event } = await jobState(id);
    return { id, state, states: [], events: event === undefined ? [] : [event] };
  }

  #clear() {
    for (const picture of this.#pictures.splice(0)) picture.close();
    byId("job-parts").replaceChildren();
  }

  async #show(id, { state, states, events, record }) {
    // What only some keys may read is left out without them.
    const message = record !== undefined && allows("admin") ? await jobMessage(id).catch(() => undefined) : undefined;
    const letter = state === "failed" && allows("admin") ? await this.#letter(id) : undefined;
    if (id !== this.#id) return;
    this.#clear();
    const event = events.at(-1);
    const last = states.at(-1) ?? {};
    const data = event?.data ?? {};
    say(byId("job-status"), "");
    byId("job-status").append(badge(state), ` ${dateTime(event?.time ?? last.time)}`);
    const job = message?.job ?? { ...this.#reconstructed(event, last) };
    byId("job-parts").append(
      this.#facts(id, { event, last, record, message, letter }),
      ...this.#failure(data, last),
      this.#timeline({ message, letter, events, states, data }),
      ...this.#images(event),
      this.#reproduction(job, message !== undefined),
      this.#buttons(id, state, job),
      card("Events", ...events.length === 0 ? [element("p", { className: "empty" }, "The events are too large to be kept.")]
        : events.map((one, index) => eventBlock(one, index === events.length - 1))),
      ...message === undefined ? [] : [card("Message", codeBlock(`Record ${shortened(record, 120)}`, JSON.stringify(message.job, null, 2)))]);
  }

  /** Returns the newest dead letter of the job with its attempts, if there is one. */
  async #letter(id) {
    // A `*` in the filter stands for any text, so the id is compared again.
    const found = await deadLetters({ job: id, replayed: true, limit: 100 }).catch(() => ({ letters: [] }));
    const letter = found.letters.filter(({ job }) => job === id).at(-1);
    return letter === undefined ? undefined : deadLetter(letter.letter).catch(() => letter);
  }

  /** Returns the fields of a job that its events tell. */
  #reconstructed(event, last) {
    const variant = event?.data?.variants?.[0];
    const { altText: text, metadata } = event?.data?.job ?? {};
    return {
      source: event?.subject ?? last.source ?? "", width: variant?.width, height: variant?.height, format: variant?.format,
      altText: text, metadata,
    };
  }

  #facts(id, { event, last, record, message, letter }) {
    const data = event?.data ?? {};
    const batch = data.job?.batch?.id ?? last.batch;
    const { preset } = data.job ?? {};
    const facts = [
      ["Source", event?.subject ?? last.source],
      ["Tenant", message?.job?.tenant],
      ["Lane", letter?.lane],
      ["Batch", batch === undefined ? undefined : element("a", { href: address("batches", { q: batch }) }, shortened(batch, 100))],
      ["Preset", preset === undefined ? undefined : `${preset.name}, version ${preset.version}`],
      ["Origin", data.origin === undefined ? undefined : originName(data.origin)],
      ["Total", data.timings === undefined ? undefined : duration(data.timings.total)],
      ["Attempts", data.attempts],
      ["Expires", data.expiresAt === undefined ? undefined : dateTime(data.expiresAt)],
      ["Result key", data.key],
      ["Record", record],
      ["Dead letter", letter === undefined ? undefined : element("a", { href: address("dead", { job: id, replayed: "true" }) }, letter.letter)],
      ["Alternative text", data.job?.altText],
      ["Metadata", data.job?.metadata === undefined ? undefined : JSON.stringify(data.job.metadata)],
    ].filter(([, value]) => value !== undefined && value !== null && value !== "");
    return card("Fields", element("dl", { className: "facts" }, ...facts.flatMap(([name, value]) => [
      element("dt", {}, name), element("dd", {}, value instanceof Node ? value : shortened(String(value), 1000)),
    ])));
  }

  #failure(data, last) {
    const [code, message] = [data.code ?? data.fallback?.code ?? last.code, data.message ?? data.fallback?.message ?? last.message];
    if (code === undefined) return [];
    const text = element("p", { className: "failure" }, element("code", {}, shortened(String(code), 60)), " ", shortened(String(message), 2000));
    return [card(data.fallback === undefined ? "Failure" : "Failure, shown as the fallback picture", text,
      element("p", { className: "hint" }, element("a", { href: address("jobs", { state: "failed", code }) }, "Other failures with this code")))];
  }

  #timeline({ letter, events, states, data }) {
    const moments = [
      ...(letter?.history ?? []).map((attempt, index) => [
        attempt.time, `Attempt ${index + 1} failed, ${shortened(String(attempt.code), 60)}: ${shortened(String(attempt.message), 300)}`]),
      ...(states.length > 0 ? states.map(({ time, state }) => [time, state]) : events.map(({ time, type }) => [time, type.replace("halcyon.image.", "")])),
      ...(letter === undefined ? [] : [[letter.time, `dead letter ${letter.letter}`]]),
    ].sort(([one], [other]) => Date.parse(one) - Date.parse(other));
    const first = Date.parse(moments[0]?.[0]);
    const rows = moments.map(([time, text], index) => row(
      element("time", { dateTime: time, title: dateTime(time) }, timeOfDay(time)), index === 0 ? "" : `+${duration(Math.max(0, Date.parse(time) - first))}`, text));
    const parts = [element("table", {}, element("caption", {}, "What happened"), element("tbody", {}, ...rows))];
    if (data.timings !== undefined) parts.push(waterfall(data.timings));
    return card("Timeline", ...parts);
  }

  #images(event) {
    const variants = event?.data?.variants ?? [];
    if (variants.length === 0) return [];
    const figures = variants.slice(0, mostPictures).map((variant) => {
      const picture = new Picture(variant, altText(event));
      this.#pictures.push(picture);
      picture.load();
      return element("figure", {}, picture.element, element("figcaption", {},
        `${variant.name === undefined ? "" : `${shortened(String(variant.name), 60)}: `}${sizes(variant)}`),
        ...typeof variant.key === "string" ? [element("code", { className: "key" }, variant.key)] : []);
    });
    const others = variants.length - figures.length;
    return [card("Images", element("div", { className: "images" }, ...figures),
      ...others > 0 ? [element("p", { className: "hint" }, `and ${others} more`)] : [])];
  }

  #reproduction(job, isWhole) {
    const { submit, curl } = commands(job, { isWhole, gateway: location.origin });
    return card("Reproduce", element("p", { className: "hint" }, isWhole
      ? "From the message of the job. It may contain credentials."
      : "From the events of the job, which do not contain all its fields. With the scope admin, the page reads its message."),
    codeBlock("Command line", submit), codeBlock("HTTP", curl));
  }

  #buttons(id, state, job) {
    const parts = [];
    const copied = { ...job };
    delete copied.id;
    if (copied.source !== "") parts.push(button("Copy to form", () => {
      const { source, ...more } = copied;
      this.#trial.fill(source, more);
    }));
    if (!terminal.includes(state)) parts.push(guard(button("Cancel job", async () => {
      if (!await confirmed("Cancel this job?", `The job ${shortened(id, 200)} ends without an image.`, "Cancel job")) return;
      try {
        await cancelJob(id);
        say(byId("job-notice"), "The cancellation was sent. The next event tells whether it was in time.");
      } catch (error) {
        say(byId("job-notice"), isRefusal(error) ? `Not allowed: ${error.message}` : `Not cancelled: ${error.message}`);
      }
    }), "submit"));
    const purge = element("a", { className: "button", href: address("actions", { purge: job.source }) }, "Purge its source…");
    if (allows("admin") && typeof job.source === "string" && job.source !== "") parts.push(purge);
    return element("div", { className: "bar" }, ...parts);
  }
}
