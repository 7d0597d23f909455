// The search for jobs: the events of the gateway's history, and the jobs in flight on all workers.

import { jobsInFlight, searchJobs } from "./api.js";
import { allows, onAccess, reason } from "./access.js";
import { badge, byId, element, row, Rows, say } from "./elements.js";
import { age, duration, originName, shortened, timeOfDay } from "./format.js";
import { currentName, go, jobLink } from "./views.js";

const most = 100;
const fields = ["q", "state", "code", "host"];

export class Jobs {
  #query = {};
  #range;
  #rows;
  #inFlightAt = 0;
  #number = 0;

  /** @param range - returns the period in seconds. */
  constructor(range) {
    this.#range = range;
    this.#rows = new Rows(byId("jobs").querySelector("tbody"), {
      // A row is made again when the state has changed.
      key: ({ job, state, time, stage, attempt }) => [job, state, time, stage, attempt].join(" "),
      make: (job) => this.#row(job),
      update: (made, { since }) => { if (since !== undefined) say(made.children[4], age(Date.now() - Date.parse(since))); },
    });
    byId("search").addEventListener("submit", (event) => {
      event.preventDefault();
      // In the search of the header, the other conditions stay only while they are visible.
      const kept = currentName() === "jobs" ? this.#query : {};
      this.#go({ ...kept, q: byId("q").value.trim() });
    });
    byId("job-filter").addEventListener("submit", (event) => event.preventDefault());
    byId("job-filter").addEventListener("change", () =>
      this.#go({ q: this.#query.q, ...Object.fromEntries(fields.slice(1).map((name) => [name, byId(`job-${name}`).value.trim()])) }));
    byId("job-reset").addEventListener("click", () => this.#go({}));
    onAccess(() => {
      const option = byId("job-state").querySelector("[value=flight]");
      option.disabled = !allows("admin");
      say(option, allows("admin") ? "in flight" : "in flight (scope admin)");
    });
  }

  #go(query) {
    go("jobs", query);
    // The same search again reloads its result.
    this.refresh().catch(() => {});
  }

  open({ query }) {
    // Rows of another search must not be taken for its result.
    if (JSON.stringify(query) !== JSON.stringify(this.#query)) this.#show({ jobs: [] }, "Searching…");
    this.#query = query;
    byId("q").value = query.q ?? "";
    for (const name of fields.slice(1)) byId(`job-${name}`).value = query[name] ?? "";
    this.#inFlightAt = 0;
    return this.refresh();
  }

  async refresh() {
    const { state, ...rest } = this.#query;
    const isInFlight = state === "flight";
    // Asking all workers is slower than a search.
    if (isInFlight && Date.now() - this.#inFlightAt < 5000) return;
    if (isInFlight) this.#inFlightAt = Date.now();
    const number = ++this.#number;
    try {
      if (isInFlight && !allows("admin")) throw new Error(reason("admin"));
      let found = isInFlight ? await this.#inFlight(rest)
        : await searchJobs({ ...rest, state, seconds: this.#range(), limit: most });
      // A job that somebody looks for by a text may be older.
      if (!isInFlight && found.jobs.length === 0 && rest.q !== undefined) {
        found = { ...await searchJobs({ ...rest, state, limit: most }), isOlder: true };
      }
      // A later search has started.
      if (number !== this.#number) return;
      this.#show(found);
    } catch (error) {
      if (number === this.#number) this.#show({ jobs: [] }, error.status === 400 ? error.message : `Jobs cannot be searched: ${error.message}`);
    }
  }

  async #inFlight({ q = "", host = "" }) {
    const { jobs, total } = await jobsInFlight(500);
    const wanted = (text, part) => part === "" || String(text ?? "").toLowerCase().includes(part.toLowerCase());
    const found = jobs.filter(({ id, source, tenant, batch }) => wanted([id, source, tenant, batch].join("\n"), q) && wanted(source, host));
    return {
      more: total > jobs.length,
      jobs: found.slice(0, most).map(({ id, submitted, stage, ...job }) => ({ ...job, job: id, state: stage, stage, since: submitted, time: submitted })),
    };
  }

  #show({ jobs, more, isOlder = false }, error) {
    byId("jobs").querySelector("table").hidden = jobs.length === 0;
    this.#rows.show(jobs);
    const isFiltered = fields.some((name) => this.#query[name]);
    say(byId("jobs-note"), error ?? (jobs.length === 0
      ? `No jobs ${isFiltered ? "match" : "are known"} in this time range${isOlder ? " or before" : ""}.`
      : `${jobs.length}${more ? " newest of more" : ""} ${jobs.length === 1 ? "job" : "jobs"}${isOlder ? " before this time range" : ""}`));
  }

  #row({ job, state, time, source, code, message, origin, total, worker, attempt, since }) {
    const detail = code !== undefined ? `${code}: ${shortened(message ?? "", 120)}`
      : worker !== undefined ? `${shortened(worker, 40)}, attempt ${attempt}`
      : origin !== undefined ? originName(origin) : "";
    const made = row(
      jobLink(job, shortened(job, 80), { className: "row", title: shortened(job, 500) }), badge(state),
      element("bdi", { title: shortened(source ?? "", 500), dir: "ltr" }, shortened(source ?? "–", 300)),
      element("span", { title: detail }, detail),
      since === undefined ? duration(total) : "", timeOfDay(time));
    made.children[3].className = "opt";
    made.children[4].className = "number";
    return made;
  }
}

