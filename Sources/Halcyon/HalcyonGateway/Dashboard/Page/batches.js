// The batches that are not completed, the newest first.

import { newestBatches } from "./api.js";
import { byId, element, say } from "./elements.js";
import { age, count, share, shortened } from "./format.js";

/** The number of batches that are looked at. */
const most = 100;

export class Batches {
  #rows = new Map();
  #isReading = false;

  /** Reloads the list. */
  async read() {
    if (this.#isReading) return;
    this.#isReading = true;
    try {
      const running = (await newestBatches(most)).filter(({ state }) => state !== "completed");
      this.#show(running);
      say(byId("batches-note"), running.length === 0 ? "No batches are running." : "");
    } catch (error) {
      this.#show([]);
      const isRefused = error.status === 401 || error.status === 403;
      say(byId("batches-note"), isRefused
        ? "To view batches, use a key with the scope read." : `Batches cannot be loaded: ${error.message}`);
    } finally {
      this.#isReading = false;
    }
  }

  #show(batches) {
    byId("batches").querySelector("table").hidden = batches.length === 0;
    byId("batches-note").hidden = batches.length > 0;
    const rows = new Map(batches.map((batch) => [batch.id, this.#rows.get(batch.id) ?? this.#row(batch)]));
    batches.forEach((batch) => this.#update(rows.get(batch.id), batch));
    for (const [id, row] of this.#rows) if (!rows.has(id)) row.remove();
    const body = byId("batches").querySelector("tbody");
    // New rows come first, so the order of the others stays.
    [...rows.values()].forEach((row, index) => {
      if (body.children[index] !== row) body.insertBefore(row, body.children[index] ?? null);
    });
    this.#rows = rows;
  }

  #row({ id }) {
    const bar = element("progress", { max: 1 });
    bar.setAttribute("aria-label", `Progress of ${shortened(id, 60)}`);
    return element("tr", {},
      element("th", { scope: "row" }, id), element("td"), element("td", {}, bar, element("span")), element("td"), element("td"));
  }

  #update(row, { state, total, ended, counts, createdAt }) {
    const [, stateCell, progress, failed, since] = row.children;
    say(stateCell, state);
    // The number of jobs is unknown until the batch is closed.
    progress.querySelector("progress").hidden = total === undefined;
    if (total > 0) progress.querySelector("progress").value = ended / total;
    say(progress.querySelector("span"), total === undefined
      ? `${count(ended)} ended` : `${share(ended, total)}, ${count(ended)} of ${count(total)}`);
    say(failed, count(counts.failed ?? 0));
    say(since, age(Date.now() - new Date(createdAt)));
  }
}
