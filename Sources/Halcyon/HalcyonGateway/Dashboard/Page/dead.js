// Dead letters: filters, payloads, and replaying or discarding them one by one or in bulk. They need the scope admin.

import { deadLetter, deadLetters, isRefusal, settle } from "./api.js";
import { onAccess } from "./access.js";
import { button, byId, codeBlock, confirmed, element, Rows, say } from "./elements.js";
import { count, dateTime, shortened } from "./format.js";
import { go, jobLink } from "./views.js";

/** The number of dead letters that are loaded at once, and the maximum of a request that replays or discards. */
const [page, bulk] = [50, 100];
const fields = ["code", "lane", "tenant", "job", "source", "since"];
const verbs = {
  replay: { title: "Replay", done: "replayed", text: "Their messages return to their topics, and their jobs run again." },
  discard: { title: "Discard", done: "discarded", text: "They are no longer listed, and their jobs do not run. This cannot be undone here." },
};
const letters = (number) => `${count(number)} dead letter${number === 1 ? "" : "s"}`;

export class DeadLetters {
  // The number of dead letters in the last overview, and when the list was read.
  #count;
  #open;
  #filter = {};
  #letters = [];
  #next;
  #isReading = false;
  #isBusy = false;
  #again;
  #rows;

  constructor() {
    this.#rows = new Rows(byId("dead").querySelector("ul"), { key: ({ letter }) => letter, make: (letter) => this.#row(letter) });
    byId("dead-filter").addEventListener("submit", (event) => event.preventDefault());
    byId("dead-filter").addEventListener("change", () =>
      go("dead", Object.fromEntries(fields.map((name) => [name, byId(`dead-${name}`).value.trim()]))));
    byId("dead-reset").addEventListener("click", () => go("dead"));
    byId("dead-more").addEventListener("click", () => this.#more());
    byId("dead-all").addEventListener("change", () => {
      for (const box of this.#boxes()) box.checked = byId("dead-all").checked;
      this.#tellSelection();
    });
    byId("dead").querySelector("ul").addEventListener("change", () => this.#tellSelection());
    for (const action of Object.keys(verbs)) {
      byId(`dead-${action}`).addEventListener("click", () => this.#settleSelected(action));
      byId(`dead-${action}-all`).addEventListener("click", () => this.#settleAll(action));
    }
    onAccess(() => this.#tellSelection());
  }

  /**
   * @param overview - the state of the cluster; the list is reloaded when the number of dead letters is not that of the list, which may have
   *   changed and changed back between two overviews.
   */
  hear({ dead }) {
    if (dead === undefined) return;
    const isNews = dead !== this.#count || dead !== this.#open;
    this.#count = dead;
    if (isNews) this.read();
  }

  open({ query }) {
    this.#filter = query;
    for (const name of fields) byId(`dead-${name}`).value = query[name] ?? "";
    return this.read();
  }

  /** Reloads the list, for example after the key was changed. */
  async read() {
    if (this.#isReading) return;
    this.#isReading = true;
    let asked;
    try {
      do {
        asked = [this.#count, this.#filter];
        // As many as are shown, so that a reload does not collapse the list.
        const limit = Math.min(1000, Math.max(page, this.#letters.length));
        const found = await deadLetters({ ...this.#filter, limit });
        [this.#letters, this.#next, this.#open] = [found.letters, found.next, found.open];
        this.#show();
        const isFiltered = Object.keys(this.#filter).length > 0;
        say(byId("dead-note"), found.letters.length === 0 && found.next === undefined
          ? `No dead letters${isFiltered && found.open > 0 ? ` match. Without the filter there are ${count(found.open)}` : ""}.`
          : `${count(found.letters.length)} shown, ${count(found.open)} in all.`);
      } while (asked[0] !== this.#count || asked[1] !== this.#filter);
    } catch (error) {
      [this.#letters, this.#next] = [[], undefined];
      this.#show();
      say(byId("dead-note"), isRefusal(error)
        ? "To view and replay dead letters, use a key with the scope admin." : `Dead letters cannot be loaded: ${error.message}`);
      // If their number does not change, nothing else triggers a reload.
      clearTimeout(this.#again);
      if (!isRefusal(error) && error.status !== 400) this.#again = setTimeout(() => this.read(), 5000);
    } finally {
      this.#isReading = false;
    }
  }

  async #more() {
    try {
      const found = await deadLetters({ ...this.#filter, limit: page, cursor: this.#next });
      const known = new Set(this.#letters.map(({ letter }) => letter));
      this.#letters = [...this.#letters, ...found.letters.filter(({ letter }) => !known.has(letter))];
      this.#next = found.next;
      this.#show();
    } catch (error) {
      say(byId("dead-status"), `Not loaded: ${error.message}`);
    }
  }

  #show() {
    this.#rows.show(this.#letters);
    byId("dead-more").hidden = this.#next === undefined;
    byId("dead-bar").hidden = this.#letters.length === 0 && this.#next === undefined;
    this.#tellSelection();
  }

  #boxes() { return [...byId("dead").querySelectorAll("ul input[type=checkbox]")]; }
  #selected() { return this.#boxes().filter((box) => box.checked).map((box) => box.value); }

  #tellSelection() {
    const number = this.#selected().length;
    byId("dead-all").checked = number > 0 && number === this.#rows.size;
    byId("dead-all").indeterminate = number > 0 && number < this.#rows.size;
    say(byId("dead-selection"), number === 0 ? "Select all shown" : `${count(number)} selected`);
    for (const action of Object.keys(verbs)) {
      byId(`dead-${action}`).disabled = this.#isBusy || number === 0;
      byId(`dead-${action}-all`).disabled = this.#isBusy;
    }
  }

  #row(letter) {
    const { letter: id, code, message, job, source, time, attempts, webhook, tenant, lane, cut, replayed } = letter;
    const name = shortened(String(job ?? id), 120);
    const box = element("input", { type: "checkbox", value: id });
    box.setAttribute("aria-label", `Select: ${name}`);
    const note = element("p", { className: "hint" }, [
      id, dateTime(time), lane, tenant === undefined ? undefined : `tenant ${tenant}`, attempts > 1 ? `${attempts} attempts` : undefined,
      webhook === undefined ? undefined : `for the webhook ${shortened(webhook, 100)}`,
      cut === undefined ? undefined : `only a part of ${count(cut)} bytes`, replayed ? "replayed or discarded" : undefined,
    ].filter((text) => text !== undefined).join(", "));
    const payload = element("details", {}, element("summary", {}, "Payload"));
    payload.addEventListener("toggle", () => {
      if (payload.open && payload.children.length === 1) this.#load(id, payload);
    });
    const one = (action) => button(verbs[action].title, async () => {
      if (action === "discard" && !await confirmed("Discard this dead letter?", `${name}. Its job does not run again.`, "Discard")) return;
      await this.#run(action, { letters: [id] });
    }, `${verbs[action].title}: ${name}`);
    const linked = jobLink(job, shortened(String(job ?? ""), 200), { className: "row" });
    return element("li", {}, element("div", { className: "pick" }, box),
      element("div", { className: "letter" },
        element("p", {}, element("code", {}, shortened(String(code), 60)), " ", shortened(String(message), 500)),
        element("p", { className: "source" }, linked, source === undefined ? "" : `, ${shortened(String(source), 300)}`), note, payload),
      element("div", { className: "buttons" }, ...(replayed ? [] : [one("replay"), one("discard")])));
  }

  async #load(id, payload) {
    try {
      const { history = [], headers, key, original, originalBase64 } = await deadLetter(id);
      const attempts = history.map(({ time, code, message }) => `${dateTime(time)}  ${code}: ${message}`).join("\n");
      payload.append(
        codeBlock("Message", original === undefined ? `base64: ${originalBase64}` : JSON.stringify(original, null, 2)),
        codeBlock("Headers", JSON.stringify({ key, headers }, null, 2)),
        ...attempts === "" ? [] : [codeBlock("Attempts", attempts)]);
    } catch (error) {
      payload.append(element("p", {}, `Not loaded: ${error.message}`));
    }
  }

  async #settleSelected(action) {
    const selected = this.#selected();
    const { title, text } = verbs[action];
    if (!await confirmed(`${title} ${letters(selected.length)}?`, text, title)) return;
    await this.#run(action, { letters: selected });
  }

  /** Replays or discards everything that matches the filter. */
  async #settleAll(action) {
    const { title, text } = verbs[action];
    const { replayed, ...filter } = this.#filter;
    const conditions = Object.entries(filter).map(([name, value]) => `${name} ${value}`).join(", ");
    const scope = conditions === "" ? "all dead letters" : "all dead letters that match";
    if (!await confirmed(`${title} ${scope}?`, `${conditions === "" ? "" : `Filter: ${conditions}. `}${text}`, title)) return;
    await this.#run(action, { filter, limit: bulk });
  }

  async #run(action, target) {
    this.#isBusy = true;
    this.#tellSelection();
    const { done } = verbs[action];
    let [number, others, failure, cursor] = [0, 0, undefined, undefined];
    try {
      do {
        const found = await settle(action, cursor === undefined ? target : { ...target, cursor });
        for (const { outcome, message } of found.letters) {
          if (outcome === done) number += 1;
          else if (outcome === "failed") failure = message;
          else others += 1;
        }
        cursor = target.filter === undefined ? undefined : found.next;
        say(byId("dead-status"), `${letters(number)} ${done}…`);
      } while (cursor !== undefined && failure === undefined);
      const rest = others > 0 ? `, ${count(others)} before` : "";
      say(byId("dead-status"), failure === undefined
        ? `${letters(number)} ${done}${rest}.` : `${letters(number)} ${done}${rest}. ${failure}`);
    } catch (error) {
      say(byId("dead-status"), `${letters(number)} ${done}. Then: ${error.message}`);
    } finally {
      this.#isBusy = false;
    }
    byId("dead").focus();
    await this.read();
  }
}
