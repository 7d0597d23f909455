// Failures of the period: groups by code and host with their trend, and the newest ones with their reasons.

import { searchJobs } from "./api.js";
import { byId, button, element, row, Rows, say, svg } from "./elements.js";
import { count, shortened, timeOfDay } from "./format.js";
import { address, jobLink } from "./views.js";

/** The number of groups on the overview, and that of failures in the list. */
const [few, most] = [5, 20];

/** True for sources that an event identifies only by their digest. */
const isNameless = (source) => typeof source !== "string" || /^data:(sha256|key)=/.test(source);

/** Draws a trend as small bars. */
function trendLine(parts) {
  const top = Math.max(1, ...parts);
  const bars = parts.map((part, index) => {
    const height = part === 0 ? 1 : Math.max(3, (20 * part) / top);
    return svg("rect", { x: index * 8, width: 6, y: 20 - height, height, class: part === 0 ? "zero" : "some" });
  });
  return svg("svg", {
    class: "trend", viewBox: `0 0 ${parts.length * 8} 20`, role: "img",
    "aria-label": `Trend, oldest first: ${parts.join(", ")}`,
  }, ...bars);
}

/** A table of groups. */
class Groups {
  #table;
  #note;
  #rows;
  #limit;

  constructor(section, limit) {
    this.#table = section.querySelector("table");
    this.#note = section.querySelector(".empty");
    this.#limit = limit;
    this.#rows = new Rows(this.#table.querySelector("tbody"), {
      key: ({ code, host }) => `${code} ${host}`,
      make: ({ code, host }) => row(
        element("a", { href: address("jobs", { state: "failed", code, host }), className: "row code" }, shortened(code, 60)),
        shortened(host || "other sources", 60), "", "", "", ""),
      update: (made, { count: number, trend, last, job }) => {
        const [, , total, line, time, example] = made.children;
        total.className = "number";
        time.className = example.className = "opt";
        say(total, count(number));
        say(time, timeOfDay(last));
        const key = trend.join(" ");
        if (line.dataset.trend !== key) {
          line.dataset.trend = key;
          line.replaceChildren(trendLine(trend));
        }
        if (example.textContent !== shortened(job, 40)) example.replaceChildren(jobLink(job, shortened(job, 40)));
      },
    });
  }

  show(failures) {
    this.#table.hidden = failures.length === 0;
    this.#note.hidden = failures.length > 0;
    this.#rows.show(failures.slice(0, this.#limit));
  }
}

export class Failures {
  #top = new Groups(byId("top-failures"), few);
  #groups = new Groups(byId("failure-groups"), 50);
  #list = byId("failures").querySelector("ul");
  #empty = byId("failures").querySelector(".empty");
  #trial;
  #range;
  #rows;

  /**
   * @param trial - the form, which also stores the jobs of this page.
   * @param range - returns the period in seconds.
   */
  constructor(trial, range) {
    this.#trial = trial;
    this.#range = range;
    this.#rows = new Rows(this.#list, { key: ({ job, time }) => `${time} ${job}`, make: (failure) => this.#row(failure) });
  }

  /** Shows the groups of `/v1/history`. */
  draw({ failures }) {
    this.#top.show(failures);
    this.#groups.show(failures);
  }

  /** Reloads the newest failures. */
  async refresh() {
    const { jobs, more } = await searchJobs({ state: "failed", limit: most, seconds: this.#range() });
    this.#empty.hidden = jobs.length > 0;
    byId("failures-more").hidden = !more;
    this.#rows.show(jobs);
  }

  #row({ job, source, code, message, attempts, time }) {
    const made = element("li", {},
      element("p", {}, element("code", {}, String(code)), " ", shortened(String(message), 500)),
      element("p", { className: "source" }, shortened(source ?? "a message without a source", 300)),
      element("p", { className: "hint" },
        element("time", { dateTime: time }, timeOfDay(time)), attempts > 1 ? `, ${attempts} attempts, ` : ", ",
        jobLink(job, shortened(job, 60), { className: "row" })));
    const own = this.#trial.job(job);
    const name = shortened(String(source ?? job), 120);
    if (own !== undefined) {
      made.append(button("Try again", () => this.#trial.submit(own), `Try again: ${name}`));
    } else if (!isNameless(source)) {
      made.append(button("Copy to form", () => this.#trial.fill(source), `Copy to form: ${name}`));
    }
    return made;
  }
}
