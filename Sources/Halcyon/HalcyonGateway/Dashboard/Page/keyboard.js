// Keyboard shortcuts. Single keys can be switched off (WCAG 2.2, 2.1.4), and do nothing while a text is entered.

import { byId } from "./elements.js";
import { currentName, go } from "./views.js";

const storage = "halcyon.keys";
const order = ["overview", "jobs", "failures", "dead", "workers", "batches", "actions"];

const isText = (target) => target.matches("input:not([type=checkbox]), textarea, select, [contenteditable]");

/** Moves the focus to the next or previous link of a row. Returns false if there is none. */
function move(step) {
  const rows = [...document.querySelectorAll(`#view-${currentName()} .row`)].filter((link) => link.offsetParent !== null);
  const index = rows.findIndex((link) => link === document.activeElement || link.closest("tr, li")?.contains(document.activeElement));
  const next = index < 0 ? rows[step > 0 ? 0 : rows.length - 1] : rows[index + step];
  next?.focus();
  return next !== undefined;
}

/** @param toggles - `pause` pauses and resumes the page. */
export function startKeyboard({ pause }) {
  const help = byId("help");
  const box = byId("keys-on");
  box.checked = sessionStorage.getItem(storage) !== "off";
  box.addEventListener("change", () => sessionStorage.setItem(storage, box.checked ? "on" : "off"));
  byId("keys").addEventListener("click", () => help.showModal());
  document.addEventListener("keydown", (event) => {
    const { key, target, ctrlKey, metaKey, altKey } = event;
    if (ctrlKey || metaKey || altKey || document.querySelector("dialog[open]") !== null) return;
    if (key === "Escape") {
      // A dialog closes itself. In a text, Escape leaves it; on the page of a job, it returns to the list.
      if (isText(target)) target.blur();
      else if (currentName() === "job") go("jobs");
      return;
    }
    if (isText(target)) return;
    if (key === "ArrowDown" || key === "ArrowUp") {
      // A region that scrolls keeps its keys.
      if (target.closest("pre") === null && move(key === "ArrowDown" ? 1 : -1)) event.preventDefault();
      return;
    }
    if (!box.checked) return;
    if (key === "/") byId("q").focus();
    else if (key === "?") help.showModal();
    else if (key === "p") pause();
    else if (/^[1-7]$/.test(key)) go(order[Number(key) - 1]);
    else return;
    event.preventDefault();
  });
}
