// The oldest dead letters that were not replayed, each with a button to replay it. If there are keys, the scope admin is needed.

import { deadLetters, replay } from "./api.js";
import { byId, element, say } from "./elements.js";
import { shortened } from "./format.js";

const most = 20;

export class DeadLetters {
  #rows = new Map();
  #count;
  #isReading = false;
  #again;

  /** @param overview - the state of the cluster; the list is reloaded when the number of dead letters has changed. */
  hear({ dead }) {
    if (dead === undefined || dead === this.#count) return;
    this.#count = dead;
    this.read();
  }

  /** Reloads the list, for example after the key was changed. */
  async read() {
    if (this.#isReading) return;
    this.#isReading = true;
    let count;
    try {
      do {
        count = this.#count;
        const { letters, next } = await deadLetters(most);
        this.#show(letters);
        this.#tell(next === undefined ? "" : `Only the oldest ${most} are shown. Use \`halcyon dead\` for all of them.`, letters.length === 0);
      } while (count !== this.#count);
    } catch (error) {
      const isRefused = error.status === 401 || error.status === 403;
      this.#show([]);
      this.#tell(isRefused
        ? "To view and replay dead letters, use a key with the scope admin." : `Dead letters cannot be loaded: ${error.message}`, false);
      // If their number does not change, nothing else triggers a reload.
      clearTimeout(this.#again);
      if (!isRefused) this.#again = setTimeout(() => this.read(), 5000);
    } finally {
      this.#isReading = false;
    }
  }

  #tell(text, isEmpty) {
    say(byId("dead-note"), isEmpty ? "No dead letters." : text);
  }

  #show(letters) {
    const there = new Set(letters.map(({ letter }) => letter));
    for (const [id, row] of this.#rows) {
      if (there.has(id)) continue;
      row.remove();
      this.#rows.delete(id);
    }
    for (const letter of letters) {
      if (this.#rows.has(letter.letter)) continue;
      const row = this.#row(letter);
      this.#rows.set(letter.letter, row);
      byId("dead").querySelector("ul").append(row);
    }
  }

  #row(letter) {
    const button = element("button", { type: "button" }, "Retry");
    button.setAttribute("aria-label", `Retry: ${shortened(String(letter.job ?? letter.letter), 120)}`);
    const note = element("p", { className: "hint" },
      `${letter.letter}, ${new Date(letter.time).toLocaleString("en-GB")}`,
      letter.attempts > 1 ? `, ${letter.attempts} attempts` : "",
      letter.webhook === undefined ? "" : `, for the webhook ${shortened(letter.webhook, 100)}`);
    button.addEventListener("click", () => this.#retry(letter, button, note));
    return element("li", {},
      element("p", {}, element("code", {}, String(letter.code)), " ", shortened(String(letter.message), 500)),
      element("p", { className: "source" },
        shortened([letter.job, letter.source].filter((text) => text !== undefined).join(", "), 300)),
      note, button);
  }

  async #retry(letter, button, note) {
    button.disabled = true;
    try {
      const { letters } = await replay(letter.letter);
      const outcome = letters[0]?.outcome ?? "gone";
      if (outcome === "failed") throw new Error(letters[0].message);
      this.#rows.get(letter.letter)?.remove();
      this.#rows.delete(letter.letter);
      byId("dead").focus();
      say(byId("dead-status"), `${letter.job ?? letter.letter}: ${outcome}`);
      await this.read();
    } catch (error) {
      button.disabled = false;
      say(note, `Not replayed: ${error.message}`);
    }
  }
}
