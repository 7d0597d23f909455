// The views of the page and their addresses: #jobs?q=timeout shows the view "jobs", and #job/ID that of one job.

import { byId, element, say } from "./elements.js";

const names = {
  overview: "Overview", jobs: "Jobs", job: "Job", failures: "Failures", dead: "Dead letters", workers: "Workers", batches: "Batches",
  actions: "Actions",
};

const views = new Map();
let current;

/** Parses the hash of an address. Unknown views are the overview. */
export function parse(hash) {
  const [path, query = ""] = hash.replace(/^#/, "").split(/\?(.*)/s);
  const [name, id] = path.split(/\/(.*)/s);
  let decoded;
  try { decoded = id === undefined ? undefined : decodeURIComponent(id); } catch { decoded = undefined; }
  const isKnown = Object.hasOwn(names, name) && (name === "job") === (decoded !== undefined && decoded !== "");
  return isKnown ? { name, id: decoded, query: Object.fromEntries(new URLSearchParams(query)) } : { name: "overview", query: {} };
}

/** Returns the address of a view. Members of the query without a value are left out. */
export function address(name, query = {}) {
  const known = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  return known.length === 0 ? `#${name}` : `#${name}?${new URLSearchParams(known)}`;
}

export const jobAddress = (id) => `#job/${encodeURIComponent(id)}`;

/** Creates a link to the page of a job; a text without an id. */
export const jobLink = (id, text, properties = {}) => (typeof id === "string" && id !== ""
  ? element("a", { href: jobAddress(id), ...properties }, text) : element("span", properties, text));

/** Shows a view. */
export function go(name, query) {
  const hash = address(name, query);
  if (location.hash === hash) return;
  // Replaces the hash first, so that the view is shown when this returns.
  history.pushState(null, "", hash);
  show();
}

/** Registers a view with `open({ id, query })`, called when it is shown, and `refresh()`, called every two seconds while it is. */
export function register(name, view) { views.set(name, view); }

export const currentView = () => views.get(current?.name) ?? {};
export const currentName = () => current?.name;

/** Shows the view of the current address. */
export function show({ isFirst = false } = {}) {
  const wanted = parse(location.hash);
  const isSame = current !== undefined && current.name === wanted.name && current.id === wanted.id;
  current = wanted;
  for (const name of Object.keys(names)) byId(`view-${name}`).hidden = name !== wanted.name;
  for (const link of document.querySelectorAll("nav a")) {
    const target = wanted.name === "job" ? "jobs" : wanted.name;
    if (link.getAttribute("href") === `#${target}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${wanted.id ?? names[wanted.name]} – Halcyon`;
  say(byId("view-name"), names[wanted.name]);
  // What cannot be loaded is told by the view, or loaded with the next refresh.
  Promise.resolve(currentView().open?.(wanted)).catch(() => {});
  if (isFirst || isSame) return;
  scrollTo(0, 0);
  byId("main").focus({ preventScroll: true });
}

/** Follows changes of the address. */
export function start() {
  addEventListener("hashchange", () => show());
  addEventListener("popstate", () => show());
  show({ isFirst: true });
}
