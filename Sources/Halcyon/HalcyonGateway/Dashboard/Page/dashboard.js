// Connects the event streams and the history of the gateway to the views of the page.

import { hasKey, history, jobHistory, searchJobs, setKey } from "./api.js";
import { loadAccess } from "./access.js";
import { Actions } from "./actions.js";
import { Batches } from "./batches.js";
import { Cluster } from "./cluster.js";
import { DeadLetters } from "./dead.js";
import { byId, say } from "./elements.js";
import { Failures } from "./failures.js";
import { Figures } from "./figures.js";
import { count } from "./format.js";
import { Gallery } from "./gallery.js";
import { JobPage } from "./job.js";
import { Jobs } from "./jobs.js";
import { startKeyboard } from "./keyboard.js";
import { EventStream } from "./stream.js";
import { Trial } from "./trial.js";
import { currentName, currentView, register, start } from "./views.js";

const rangeStorage = "halcyon.range";
const range = () => Number(byId("range").value);

const figures = new Figures();
const trial = new Trial();
const gallery = new Gallery(byId("latest"));
const failures = new Failures(trial, range);
const cluster = new Cluster();
const dead = new DeadLetters();

/** Shows the figures of the period. Also called while the event stream is away, because requests may succeed. */
async function readHistory() {
  const found = await history(range());
  figures.draw(found);
  failures.draw(found);
}

register("overview", { refresh: readHistory, open: readHistory });
register("jobs", new Jobs(range));
register("job", new JobPage(trial));
register("failures", { refresh: () => Promise.all([readHistory(), failures.refresh()]), open() { return this.refresh(); } });
register("dead", dead);
register("workers", cluster);
register("batches", new Batches());
register("actions", new Actions());

// The state of the cluster has a separate stream. Only the newest state matters, so the stream is not resumed.
const overviews = new EventStream({
  path: "/v1/cluster/events",
  hears(overview) {
    cluster.hear(overview);
    if (!isPaused) dead.hear(overview);
  },
  tells() {},
});

let heard = 0;
let connection = { state: "waiting", text: "Connecting…" };
let isPaused = false;
let isPrefilled = false;

function tellConnection() {
  const { state, text } = connection;
  const isShown = isPaused && state === "live";
  byId("connection").dataset.state = isShown ? "paused" : state;
  say(byId("connection"), isShown ? "Paused" : isPaused ? `${text} (paused)` : text);
}

const stream = new EventStream({
  hears(event) {
    heard += 1;
    if (event.type === "halcyon.image.ready") gallery.add(event);
    trial.hear(event);
  },
  tells(state, text, { mayHaveMissed = false, status } = {}) {
    connection = { state, text };
    tellConnection();
    askForKey(state === "refused", status);
    // Another gateway may have taken its place, with other keys.
    if (state === "live") loadAccess();
    if (state === "live" && !isPrefilled) prefill();
    if (mayHaveMissed) trial.catchUp();
  },
});

/** Shows the images of the jobs that ended before the page was opened. */
async function prefill() {
  isPrefilled = true;
  const { jobs } = await searchJobs({ state: "ready", limit: 12 }).catch(() => ({ jobs: [] }));
  const found = await Promise.all(jobs.map(({ job }) => jobHistory(job).catch(() => ({ events: [] }))));
  gallery.prefill(found.map(({ events }) => events.at(-1)).filter((event) => event?.type === "halcyon.image.ready"));
}

// The key.

function askForKey(isAsked, status) {
  const form = byId("key");
  if (!isAsked) {
    say(byId("key-error"), "");
    form.hidden = true;
    return;
  }
  say(byId("key-error"), status === 403 ? "This key does not have the scope read, which this page needs."
    : hasKey() ? "The gateway does not accept this key." : "");
  if (!form.hidden) return;
  form.hidden = false;
  byId("secret").focus();
}

/** Loads everything again, for example after the key was changed. */
async function reload() {
  await loadAccess();
  await refresh();
  if (currentName() !== "dead") dead.read();
}

byId("key").addEventListener("submit", (event) => {
  event.preventDefault();
  setKey(byId("secret").value.trim());
  byId("secret").value = "";
  say(byId("connection"), "Connecting…");
  stream.retryNow();
  overviews.retryNow();
  reload();
});

// The period.

const stored = sessionStorage.getItem(rangeStorage);
if ([...byId("range").options].some(({ value }) => value === stored)) byId("range").value = stored;
byId("range").addEventListener("change", () => {
  sessionStorage.setItem(rangeStorage, byId("range").value);
  refresh();
});

/** Removes the periods for which the gateway keeps no history. */
async function limitRange() {
  const { seconds } = await history(86_400);
  for (const option of [...byId("range").options]) if (Number(option.value) > seconds) option.remove();
}

// Drawing: twice a second whatever the number of events, and not while the page is hidden.

function pause() {
  isPaused = !isPaused;
  byId("pause").setAttribute("aria-pressed", String(isPaused));
  tellConnection();
  draw();
  if (!isPaused) refresh();
}

byId("pause").addEventListener("click", pause);

function draw() {
  if (isPaused || document.hidden) return;
  say(byId("heard"), count(heard));
  gallery.draw();
  cluster.draw();
}

let isRefreshing = false;

/** Reloads the current view. A failed request is repeated with the next refresh, and the connection tells the reason. */
async function refresh() {
  if (isRefreshing) return;
  isRefreshing = true;
  try {
    await currentView().refresh?.();
  } catch {
    // See above.
  } finally {
    isRefreshing = false;
  }
}

// The link moves the focus; the address names the view.
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  byId("main").focus();
});

setInterval(draw, 500);
setInterval(() => {
  if (!isPaused && !document.hidden) refresh();
}, 2000);
document.addEventListener("visibilitychange", () => {
  if (document.hidden || isPaused) return;
  draw();
  refresh();
});
startKeyboard({ pause });
draw();
loadAccess().then(() => {
  start();
  limitRange().catch(() => {});
});
stream.run();
overviews.run();
