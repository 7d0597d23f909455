// The state of the cluster: the lag of the lanes, the workers with their throughput and memory, and the tenants.

import { isRefusal, paused, setPaused } from "./api.js";
import { allows, guard, onAccess, reason } from "./access.js";
import { badge, button, byId, confirmed, element, row, Rows, say } from "./elements.js";
import { age, bytes, count, dateTime, rate, short, shortened } from "./format.js";
import { address } from "./views.js";

const names = { high: "High", normal: "Normal", low: "Low" };

/** A table whose rows can be paused and resumed. `kind` is "lanes" or "tenants". */
class Pausable {
  #rows;
  #kind;
  #changed;

  /** @param changed - called after a change. */
  constructor(table, kind, texts, changed) {
    this.#kind = kind;
    this.#changed = changed;
    this.#rows = new Rows(table.querySelector("tbody"), {
      key: ({ name }) => name,
      make: ({ name }) => {
        const made = row(kind === "tenants" ? element("a", { href: address("dead", { tenant: name }), title: "Dead letters of this tenant" }, name)
          : names[name] ?? name, "", "", "");
        made.children[1].className = "number";
        return made;
      },
      update: (made, item) => {
        const [, number, state, action] = made.children;
        say(number, texts(item));
        const key = `${item.since} ${allows("admin")}`;
        if (made.dataset.state === key) return;
        made.dataset.state = key;
        state.replaceChildren(...item.since === undefined ? ["running"] : [badge("paused"), ` since ${dateTime(item.since)}`]);
        const isPaused = item.since !== undefined;
        action.replaceChildren(guard(button(isPaused ? "Resume" : "Pause",
          () => this.#change(item.name, !isPaused), `${isPaused ? "Resume" : "Pause"}: ${item.name}`), "admin"));
      },
    });
  }

  show(items) { this.#rows.show(items); }

  async #change(name, isPaused) {
    const what = `${this.#kind === "lanes" ? "lane" : "tenant"} ${shortened(name, 80)}`;
    if (isPaused && !await confirmed(`Pause the ${what}?`, "Its jobs wait until it is resumed. Jobs in flight end.", "Pause")) return;
    try {
      await setPaused(this.#kind, name, isPaused);
      say(byId("cluster-status"), `The ${what} is ${isPaused ? "paused" : "resumed"}.`);
    } catch (error) {
      say(byId("cluster-status"), `${isPaused ? "Not paused" : "Not resumed"}: ${error.message}`);
    }
    this.#changed();
  }
}

export class Cluster {
  #overview;
  #paused = { lanes: [], tenants: [] };
  #lanes;
  #tenants;
  #workers;

  constructor() {
    const changed = () => this.refresh();
    this.#lanes = new Pausable(byId("lanes"), "lanes", ({ lag }) => (lag === undefined ? "–" : count(lag)), changed);
    this.#tenants = new Pausable(byId("tenants"), "tenants", ({ jobs }) => count(jobs), changed);
    this.#workers = new Rows(byId("workers").querySelector("tbody"), {
      key: ({ id }) => id,
      make: ({ id }) => {
        const made = row(...Array.from({ length: 8 }, () => ""));
        made.title = id;
        for (const index of [1, 2, 3, 6]) made.children[index].className = "opt";
        for (const index of [4, 5, 6, 7]) made.children[index].classList.add("number");
        return made;
      },
      update: (made, { host, pid, version, since, threads, jobs, rate: perSecond, finished, memory }) => {
        const busy = Object.entries(jobs ?? {}).filter(([, number]) => number > 0);
        const number = busy.reduce((sum, [, jobs]) => sum + jobs, 0);
        const known = (value, format) => (value === undefined || value === 0 && format === bytes ? "–" : format(value));
        [
          host, pid, version, age(Date.now() - Date.parse(since)), `${count(number)} / ${threads ?? "?"}`,
          known(perSecond, rate), known(finished, short), known(memory, bytes),
        ].forEach((text, index) => say(made.children[index], String(text ?? "–")));
        made.children[4].title = busy.map(([lane, jobs]) => `${count(jobs)} ${lane}`).join(", ");
      },
    });
    onAccess(() => say(byId("cluster-hint"), allows("admin") ? "" : `To pause and resume lanes and tenants: ${reason("admin").toLowerCase()}`));
  }

  /** @param overview - the state of the cluster from the gateway; unknown values are undefined. */
  hear(overview) {
    this.#overview = overview;
  }

  open() { return this.refresh(); }

  /** Reloads the paused lanes and tenants. */
  async refresh() {
    if (allows("admin")) {
      try {
        this.#paused = await paused();
      } catch (error) {
        if (!isRefusal(error)) say(byId("cluster-status"), `Pauses cannot be loaded: ${error.message}`);
      }
    }
    this.draw();
  }

  draw() {
    if (this.#overview === undefined) return;
    const { lanes, retries, scheduled, overflow, workers, dead } = this.#overview;
    const lags = Object.fromEntries((lanes ?? []).map(({ lane, lag }) => [lane, lag]));
    const tiles = { "lag-high": lags.high, "lag-normal": lags.normal, "lag-low": lags.low, "lag-retries": retries, "lag-scheduled": scheduled, "dead-count": dead };
    for (const [id, value] of Object.entries(tiles)) {
      say(byId(id), value === undefined ? "–" : short(value));
      byId(id).title = value === undefined ? "currently unknown" : count(value);
    }
    const total = (workers ?? []).reduce((sum, worker) => sum + (worker.rate ?? 0), 0);
    say(byId("worker-summary"), workers === undefined ? "–" : short(workers.length));
    say(byId("workers-note"), workers === undefined ? "The workers are currently unknown."
      : workers.length === 0 ? "No workers are running." : `${count(workers.length)} running, ${rate(total)} jobs per second. Waiting: ${
        count(retries ?? 0)} for a retry, ${count(scheduled ?? 0)} for their start, ${count(overflow ?? 0)} behind other tenants.`);
    byId("workers").hidden = workers === undefined || workers.length === 0;
    this.#workers.show(workers ?? []);
    this.#drawPausable(lags, workers ?? []);
  }

  #drawPausable(lags, workers) {
    const since = (items, key, name) => items.find((item) => item[key] === name)?.since;
    this.#lanes.show(Object.keys(names).map((name) => ({ name, lag: lags[name], since: since(this.#paused.lanes, "lane", name) })));
    const jobs = new Map(this.#paused.tenants.map(({ tenant }) => [tenant, 0]));
    for (const worker of workers) {
      for (const [tenant, number] of Object.entries(worker.tenants ?? {})) jobs.set(tenant, (jobs.get(tenant) ?? 0) + number);
    }
    const tenants = [...jobs].map(([name, number]) => ({ name, jobs: number, since: since(this.#paused.tenants, "tenant", name) }))
      .sort((one, other) => other.jobs - one.jobs || one.name.localeCompare(other.name));
    byId("tenants").hidden = tenants.length === 0;
    byId("tenants-note").hidden = tenants.length > 0;
    this.#tenants.show(tenants);
  }
}
