// The latest failures with their reasons, newest first.

import { element } from "./elements.js";
import { shortened } from "./format.js";

const most = 50;
const clock = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });

/** True for sources that an event identifies only by their digest. */
const isNameless = (subject) => typeof subject !== "string" || /^data:(sha256|key)=/.test(subject);

export class Failures {
  #list;
  #empty;
  #arrivals = [];
  #trial;

  /** @param trial - the form, which also stores the jobs of this page. */
  constructor(section, trial) {
    this.#list = section.querySelector("ul");
    this.#empty = section.querySelector(".empty");
    this.#trial = trial;
  }

  add(event) {
    this.#arrivals.push(event);
    if (this.#arrivals.length > most) this.#arrivals.shift();
  }

  /** Shows the failures that were added since the last call. */
  draw() {
    if (this.#arrivals.length === 0) return;
    this.#empty.hidden = true;
    this.#list.prepend(...this.#arrivals.splice(0).map((event) => this.#row(event)).reverse());
    // A row that contains the focus stays until the focus moves on.
    for (const row of [...this.#list.children].slice(most)) {
      if (!row.contains(document.activeElement)) row.remove();
    }
  }

  #row(event) {
    const { code, message, attempts, job } = event.data ?? {};
    const time = new Date(event.time);
    const row = element("li", {},
      element("p", {}, element("code", {}, String(code)), " ", shortened(String(message), 500)),
      element("p", { className: "source" }, shortened(String(event.subject ?? "a message without a source"), 300)),
      element("p", { className: "hint" },
        element("time", { dateTime: String(event.time) }, Number.isNaN(time.valueOf()) ? "" : clock.format(time)),
        attempts > 1 ? `, ${attempts} attempts` : ""));
    const own = this.#trial.job(job?.id);
    if (own !== undefined) {
      row.append(this.#button("Try again", event, () => this.#trial.submit(own)));
    } else if (!isNameless(event.subject)) {
      row.append(this.#button("Copy to form", event, () => this.#trial.fill(event.subject)));
    }
    return row;
  }

  #button(text, event, action) {
    const button = element("button", { type: "button" }, text);
    // Many buttons have the same text.
    button.setAttribute("aria-label", `${text}: ${shortened(String(event.subject ?? event.data?.job?.id), 120)}`);
    button.addEventListener("click", action);
    return button;
  }
}
