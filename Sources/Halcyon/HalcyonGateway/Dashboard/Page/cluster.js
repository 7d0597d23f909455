// The state of the cluster: the lag of the lanes, and the workers with their jobs in flight.

import { byId, element, say } from "./elements.js";
import { count } from "./format.js";

const since = new Intl.DateTimeFormat("en-GB", { dateStyle: "short", timeStyle: "short" });

export class Cluster {
  #overview;
  #rows = new Map();

  /** @param overview - the state of the cluster from the gateway; unknown values are undefined. */
  hear(overview) {
    this.#overview = overview;
  }

  draw() {
    if (this.#overview === undefined) return;
    const { lanes, retries, scheduled, workers, dead } = this.#overview;
    for (const { lane, lag } of lanes ?? []) {
      const place = byId(`lag-${lane}`);
      if (place !== null) say(place, count(lag));
    }
    if (lanes === undefined) for (const place of document.querySelectorAll("#cluster dd.lag")) say(place, "–");
    if (retries !== undefined) say(byId("lag-retries"), count(retries));
    if (scheduled !== undefined) say(byId("lag-scheduled"), count(scheduled));
    say(byId("dead-count"), dead === undefined ? "–" : count(dead));
    this.#drawWorkers(workers);
  }

  #drawWorkers(workers) {
    const empty = byId("workers-empty");
    empty.hidden = workers !== undefined && workers.length > 0;
    say(empty, workers === undefined ? "The workers are currently unknown." : "No workers are running.");
    byId("workers").hidden = !empty.hidden;
    const there = new Set();
    for (const worker of workers ?? []) {
      there.add(worker.id);
      const row = this.#row(worker.id);
      const jobs = Object.entries(worker.jobs ?? {}).filter(([, number]) => number > 0);
      const texts = [
        worker.host, worker.pid, worker.version, since.format(new Date(worker.since)),
        jobs.length === 0 ? "none" : jobs.map(([lane, number]) => `${count(number)} ${lane}`).join(", "),
      ];
      texts.forEach((text, index) => say(row.children[index], String(text)));
    }
    for (const [id, row] of this.#rows) {
      if (there.has(id)) continue;
      row.remove();
      this.#rows.delete(id);
    }
  }

  #row(id) {
    let row = this.#rows.get(id);
    if (row === undefined) {
      row = element("tr", {}, element("th", { scope: "row" }), ...[1, 2, 3, 4].map(() => element("td")));
      this.#rows.set(id, row);
      byId("workers").querySelector("tbody").append(row);
    }
    return row;
  }
}
