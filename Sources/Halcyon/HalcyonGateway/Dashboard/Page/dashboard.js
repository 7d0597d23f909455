// Connects the event streams to the parts of the page.

import { setKey } from "./api.js";
import { Batches } from "./batches.js";
import { Cluster } from "./cluster.js";
import { DeadLetters } from "./dead.js";
import { byId, say } from "./elements.js";
import { Failures } from "./failures.js";
import { Figures } from "./figures.js";
import { count } from "./format.js";
import { Gallery } from "./gallery.js";
import { Measures } from "./measures.js";
import { EventStream } from "./stream.js";
import { Trial } from "./trial.js";

const measures = new Measures();
const figures = new Figures(measures);
const trial = new Trial();
const gallery = new Gallery(byId("latest"));
const failures = new Failures(byId("failures"), trial);

const cluster = new Cluster();
const dead = new DeadLetters();
const batches = new Batches();

// The state of the cluster has a separate stream. Only the newest state matters, so the stream is not resumed.
const overviews = new EventStream({
  path: "/v1/cluster/events",
  hears(overview) {
    cluster.hear(overview);
    dead.hear(overview);
  },
  tells() {},
});

let heard = 0;

const stream = new EventStream({
  hears(event) {
    heard += 1;
    measures.add(event);
    if (event.type === "halcyon.image.ready") gallery.add(event);
    if (event.type === "halcyon.image.failed") failures.add(event);
    trial.hear(event);
  },
  tells(state, text, { mayHaveMissed = false, ahead } = {}) {
    byId("connection").dataset.state = state;
    say(byId("connection"), text);
    askForKey(state === "refused");
    if (ahead !== undefined) measures.ahead = ahead;
    if (mayHaveMissed) trial.catchUp();
  },
});

// The key.

function askForKey(isAsked) {
  const form = byId("key");
  if (form.hidden === !isAsked) return;
  form.hidden = !isAsked;
  if (isAsked) byId("secret").focus();
}

byId("key").addEventListener("submit", (event) => {
  event.preventDefault();
  setKey(byId("secret").value.trim());
  byId("secret").value = "";
  say(byId("connection"), "Connecting…");
  stream.retryNow();
  overviews.retryNow();
  dead.read();
  batches.read();
});

// Drawing: twice a second whatever the number of events, and not while the page is hidden.

let isPaused = false;

byId("pause").addEventListener("click", () => {
  isPaused = !isPaused;
  byId("pause").setAttribute("aria-pressed", String(isPaused));
  draw();
});

function draw() {
  if (isPaused || document.hidden) return;
  say(byId("heard"), count(heard));
  figures.draw();
  gallery.draw();
  failures.draw();
  cluster.draw();
}

setInterval(draw, 500);
setInterval(() => {
  if (!isPaused && !document.hidden) batches.read();
}, 2000);
document.addEventListener("visibilitychange", draw);
draw();
batches.read();
stream.run();
overviews.run();
