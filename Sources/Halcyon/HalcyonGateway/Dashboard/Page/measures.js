// What the last minutes were like. The memory is fixed: a slot a second, whatever happens in it.

/** Seconds that are looked back on. */
export const span = 300;

// Latencies are counted in classes that grow by 5 %, from 0.1 ms to some 10 minutes: a percentile is true to 2.5 %.
const least = 0.1;
const growth = Math.log(1.05);
const classes = 320;
const classOf = (milliseconds) =>
  Math.min(classes - 1, Math.max(0, Math.floor(Math.log(milliseconds / least) / growth)));
const middleOf = (index) => least * Math.exp((index + 0.5) * growth);

const origins = ["memory", "source-cache", "coalesced", "network"];

class Slot {
  latencies = new Uint32Array(classes);

  reset(second) {
    this.second = second;
    this.ready = 0;
    this.failed = 0;
    this.origins = Object.fromEntries(origins.map((origin) => [origin, 0]));
    this.latencies.fill(0);
  }
}

export class Measures {
  #slots = Array.from({ length: span }, () => new Slot());
  /** How far the clock of the events is ahead of this one, in ms. */
  ahead = 0;

  constructor() { for (const slot of this.#slots) slot.reset(-1); }

  /** The running second, by the clock of the events. */
  get #now() { return Math.floor((Date.now() + this.ahead) / 1000); }

  /** Counts an event in the second of its own time: what is heard late is no burst. */
  add(event) {
    const [isReady, isFailed] = [event.type === "halcyon.image.ready", event.type === "halcyon.image.failed"];
    if (!isReady && !isFailed) return;
    const now = this.#now;
    // Clocks are a little apart: what seems to come from the future is of now.
    const second = Math.min(now, Math.floor(Date.parse(event.time) / 1000));
    if (!(second > now - span)) return;
    const slot = this.#slots[second % span];
    if (slot.second !== second) slot.reset(second);
    if (isFailed) { slot.failed += 1; return; }
    slot.ready += 1;
    if (Object.hasOwn(slot.origins, event.data?.origin)) slot.origins[event.data.origin] += 1;
    const total = event.data?.timings?.total;
    if (typeof total === "number") slot.latencies[classOf(total)] += 1;
  }

  /** Sums of the span, percentiles in ms, and `bars`: ready and failed a second by `step` seconds, the oldest first. */
  summary(step = 5) {
    const now = this.#now;
    const latencies = new Uint32Array(classes);
    const sum = { ready: 0, failed: 0, origins: Object.fromEntries(origins.map((origin) => [origin, 0])) };
    const bars = Array.from({ length: span / step }, () => ({ ready: 0, failed: 0 }));
    for (const slot of this.#slots) {
      const age = now - slot.second;
      if (slot.second < 0 || age < 0 || age >= span) continue;
      sum.ready += slot.ready;
      sum.failed += slot.failed;
      for (const origin of origins) sum.origins[origin] += slot.origins[origin];
      for (let index = 0; index < classes; index += 1) latencies[index] += slot.latencies[index];
      const bar = bars[bars.length - 1 - Math.floor(age / step)];
      bar.ready += slot.ready / step;
      bar.failed += slot.failed / step;
    }
    return { ...sum, bars, percentile: (part) => percentile(latencies, part) };
  }
}

function percentile(latencies, part) {
  const all = latencies.reduce((sum, number) => sum + number, 0);
  if (all === 0) return undefined;
  let rest = Math.ceil(all * part);
  return middleOf(latencies.findIndex((number) => (rest -= number) <= 0));
}
