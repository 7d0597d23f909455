// Statistics of the last minutes. Memory use is constant: one bucket per second.

/** The length of the period in seconds. */
export const span = 300;

// A histogram of latencies whose classes grow by 5 %, from 0.1 ms to about 10 minutes. Percentiles are accurate to 2.5 %.
const least = 0.1;
const growth = Math.log(1.05);
const classes = 320;
const classOf = (milliseconds) =>
  Math.min(classes - 1, Math.max(0, Math.floor(Math.log(milliseconds / least) / growth)));
const middleOf = (index) => least * Math.exp((index + 0.5) * growth);

const origins = ["memory", "store", "source-cache", "coalesced", "network"];

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
  /** The offset of the events' clock to this one, in ms. */
  ahead = 0;

  constructor() { for (const slot of this.#slots) slot.reset(-1); }

  /** The current second of the events' clock. */
  get #now() { return Math.floor((Date.now() + this.ahead) / 1000); }

  /** Counts an event in the second of its timestamp, so that late events do not appear as a burst. */
  add(event) {
    const [isReady, isFailed] = [event.type === "halcyon.image.ready", event.type === "halcyon.image.failed"];
    if (!isReady && !isFailed) return;
    const now = this.#now;
    // Clocks differ slightly: an event from the future counts as current.
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

  /** Returns the sums of the period, percentiles in ms, and `bars`: ready and failed jobs per second in steps of `step` seconds, oldest first. */
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
