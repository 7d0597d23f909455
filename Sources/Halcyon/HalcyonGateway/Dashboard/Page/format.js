// Numbers and names for people.

const whole = new Intl.NumberFormat("en");

export const count = (value) => whole.format(value);

/** Events a second. */
export const rate = (value) => (value === 0 || value >= 10 ? whole.format(Math.round(value)) : value.toPrecision(2));

/** A part of a whole; a dash for a part of nothing. */
export const share = (part, all) => (all === 0 ? "–" : `${Math.round((100 * part) / all)}\u00a0%`);

/** Milliseconds; a dash for none. */
export function duration(milliseconds) {
  if (milliseconds === undefined) return "–";
  if (milliseconds < 1) return `${milliseconds.toFixed(2)}\u00a0ms`;
  if (milliseconds < 10) return `${milliseconds.toFixed(1)}\u00a0ms`;
  if (milliseconds < 10_000) return `${whole.format(Math.round(milliseconds))}\u00a0ms`;
  return `${(milliseconds / 1000).toFixed(1)}\u00a0s`;
}

/** Three digits of it, as in 9.41 kB. The space does not break. */
export function bytes(value) {
  const [number, unit] = value < 1000 ? [value, "B"] : value < 1_000_000 ? [value / 1000, "kB"] : [value / 1_000_000, "MB"];
  return `${number < 100 ? Number(number.toPrecision(3)) : Math.round(number)}\u00a0${unit}`;
}

/** At most so many characters, the middle left out. */
export function shortened(text, limit = 200) {
  if (text.length <= limit) return text;
  const half = Math.floor(limit / 2);
  return `${text.slice(0, half)}…${text.slice(-half)}`;
}

/** The end of a text: of a URL it tells most. */
export const tail = (text, limit) => (text.length <= limit ? text : `…${text.slice(1 - limit)}`);

const names = { memory: "cache", "source-cache": "source cache", network: "network", coalesced: "coalesced" };

/** What an event's `origin` is called. */
export const originName = (origin) => names[origin] ?? shortened(String(origin), 40);
