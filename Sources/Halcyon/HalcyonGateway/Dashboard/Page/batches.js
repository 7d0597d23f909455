// Batches, the newest first, with their progress and failures.

import { batchFailures, cancelBatch, isRefusal, newestBatches } from "./api.js";
import { guard } from "./access.js";
import { badge, button, byId, confirmed, element, Rows, say } from "./elements.js";
import { age, count, share, shortened } from "./format.js";
import { address, go, jobLink } from "./views.js";

/** The number of batches that are looked at, and of the failures that are shown of one. */
const [most, mostFailures] = [100, 20];

export class Batches {
  #isReading = false;
  #query = {};
  #rows = new Rows(byId("batches").querySelector("tbody"), {
    key: ({ id }) => id, make: (batch) => this.#row(batch), update: (made, batch) => this.#update(made, batch),
  });

  constructor() {
    byId("batch-filter").addEventListener("submit", (event) => event.preventDefault());
    byId("batch-filter").addEventListener("change", () =>
      go("batches", { q: byId("batch-q").value.trim(), state: byId("batch-state").value }));
  }

  open({ query }) {
    this.#query = query;
    byId("batch-q").value = query.q ?? "";
    byId("batch-state").value = query.state ?? "";
    byId("batch-detail").replaceChildren();
    return this.refresh();
  }

  /** Reloads the list. */
  async refresh() {
    if (this.#isReading) return;
    this.#isReading = true;
    try {
      const { q = "", state } = this.#query;
      // With an id, completed batches are found too.
      const wanted = state === undefined && q === "" ? ({ state }) => state !== "completed"
        : (batch) => batch.id.includes(q) && (state === undefined || state === "all" || batch.state === state);
      const batches = (await newestBatches(most)).filter(wanted);
      this.#show(batches);
      say(byId("batches-note"), batches.length > 0 ? "" : q === "" && state === undefined ? "No batches are running." : "No batches match.");
    } catch (error) {
      this.#show([]);
      say(byId("batches-note"), isRefusal(error)
        ? "To view batches, use a key with the scope read." : `Batches cannot be loaded: ${error.message}`);
    } finally {
      this.#isReading = false;
    }
  }

  #show(batches) {
    byId("batches").querySelector("table").hidden = batches.length === 0;
    byId("batches-note").hidden = batches.length > 0;
    this.#rows.show(batches);
  }

  #row({ id }) {
    const bar = element("progress", { max: 1 });
    bar.setAttribute("aria-label", `Progress of ${shortened(id, 60)}`);
    const cancel = button("Cancel", () => this.#cancel(id), `Cancel: ${shortened(id, 60)}`);
    return element("tr", {},
      element("th", { scope: "row" }, element("a", { href: address("batches", { q: id }), className: "row" }, shortened(id, 60))),
      element("td", { className: "opt" }), element("td", {}, bar, element("span")),
      element("td", { className: "number" }, button("0", () => this.#failures(id), `Failures of ${shortened(id, 60)}`)),
      element("td", { className: "opt number" }), element("td", {}, cancel));
  }

  #update(row, { state, total, ended, counts, createdAt }) {
    const [, stateCell, progress, failed, since, action] = row.children;
    if (stateCell.textContent !== state) stateCell.replaceChildren(badge(state));
    // The number of jobs is unknown until the batch is closed.
    progress.querySelector("progress").hidden = total === undefined;
    if (total > 0) progress.querySelector("progress").value = ended / total;
    say(progress.querySelector("span"), total === undefined
      ? `${count(ended)} ended` : `${share(ended, total)}, ${count(ended)} of ${count(total)}`);
    const failures = failed.querySelector("button");
    say(failures, count(counts.failed ?? 0));
    failures.disabled = (counts.failed ?? 0) === 0;
    say(since, age(Date.now() - new Date(createdAt)));
    guard(action.querySelector("button"), "submit").hidden = state === "completed";
  }

  async #failures(id) {
    const detail = byId("batch-detail");
    try {
      const { failures } = await batchFailures(id, mostFailures);
      detail.replaceChildren(
        element("h3", {}, `Failures of ${shortened(id, 100)}`),
        element("ul", { className: "rows" }, ...failures.map(({ job, code, message }) => element("li", {},
          element("p", {}, element("code", {}, shortened(String(code), 60)), " ", shortened(String(message), 500)),
          element("p", { className: "source" }, jobLink(job, shortened(String(job), 200), { className: "row" }))))));
    } catch (error) {
      detail.replaceChildren(element("p", {}, `The failures cannot be loaded: ${error.message}`));
    }
    detail.focus();
  }

  async #cancel(id) {
    if (!await confirmed("Cancel this batch?", `The jobs of ${shortened(id, 200)} that have not ended are cancelled.`, "Cancel batch")) return;
    try {
      await cancelBatch(id);
      say(byId("batches-status"), `The batch ${shortened(id, 100)} is being cancelled.`);
    } catch (error) {
      say(byId("batches-status"), `Not cancelled: ${error.message}`);
    }
  }
}
