// Creates elements. Sources, messages and alternative texts are untrusted, so text is never parsed as HTML.

const svgNamespace = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

/** Creates an element with properties and children. Children are elements or text. */
export function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

/** Creates an SVG element with attributes and children. */
export function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS(svgNamespace, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** Sets a text only if it changes, to avoid needless layout and screen-reader announcements. */
export function say(target, text) {
  if (target.textContent !== text) target.textContent = text;
}

/** Creates a button. `name` is its name for screen readers, if the text alone is not unique. */
export function button(text, action, name) {
  const made = element("button", { type: "button" }, text);
  if (name !== undefined) made.setAttribute("aria-label", name);
  made.addEventListener("click", action);
  return made;
}

/** Creates a badge with the state of a job, batch or lane. */
export const badge = (state) => {
  const made = element("span", { className: "badge" }, String(state));
  made.dataset.state = String(state);
  return made;
};

/** Creates a row of a table. The first cell is its header; each cell is an element, a text, or a list of them. */
export function row(...cells) {
  return element("tr", {}, ...cells.map((cell, index) =>
    element(index === 0 ? "th" : "td", index === 0 ? { scope: "row" } : {}, ...[cell].flat())));
}

/** Keeps the rows of a list in step with items, by key, so that focus, selections and open details survive a refresh. */
export class Rows {
  #rows = new Map();
  #target;
  #rule;

  /** @param rule - `key` of an item, `make` a row of it, and optionally `update(row, item)`, which is also called after `make`. */
  constructor(target, rule) {
    this.#target = target;
    this.#rule = rule;
  }

  get size() { return this.#rows.size; }
  has(key) { return this.#rows.has(key); }

  show(items) {
    const { key, make, update = () => {} } = this.#rule;
    const rows = new Map();
    for (const item of items) {
      const name = key(item);
      const made = this.#rows.get(name) ?? make(item);
      update(made, item);
      rows.set(name, made);
    }
    for (const [name, made] of this.#rows) if (!rows.has(name)) made.remove();
    // Only rows out of place are moved, because moving an element takes its focus.
    [...rows.values()].forEach((made, index) => {
      if (this.#target.children[index] !== made) this.#target.insertBefore(made, this.#target.children[index] ?? null);
    });
    this.#rows = rows;
  }
}

/** Asks for confirmation in a dialog. Resolves to true if the action was confirmed. */
export function confirmed(title, text, action) {
  const dialog = byId("confirm");
  say(byId("confirm-title"), title);
  say(byId("confirm-text"), text);
  say(byId("confirm-yes"), action);
  dialog.returnValue = "";
  dialog.showModal();
  byId("confirm-no").focus();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
  });
}

/** Creates a block of code with a button that copies it. */
export function codeBlock(name, text) {
  const code = element("pre", { tabIndex: 0 }, text);
  code.setAttribute("role", "region");
  code.setAttribute("aria-label", name);
  const copy = button("Copy", async () => {
    try {
      await navigator.clipboard.writeText(code.textContent);
      say(copy, "Copied");
    } catch {
      // Without TLS there is no clipboard. The text is selected instead.
      getSelection().selectAllChildren(code);
      say(copy, "Selected");
    }
    setTimeout(() => say(copy, "Copy"), 2000);
  }, `Copy: ${name}`);
  return element("div", { className: "code" }, element("div", { className: "code-head" }, element("span", {}, name), copy), code);
}
