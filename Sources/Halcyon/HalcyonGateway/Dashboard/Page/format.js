// Formats numbers and names for display.

const whole = new Intl.NumberFormat("en");

export const count = (value) => whole.format(value);

/** Formats a rate in events per second. */
export const rate = (value) => (value === 0 || value >= 10 ? whole.format(Math.round(value)) : value.toPrecision(2));

/** Formats a share as a percentage; a dash if the whole is 0. */
export const share = (part, all) => (all === 0 ? "–" : `${Math.round((100 * part) / all)}\u00a0%`);

/** Formats milliseconds; a dash if undefined. */
export function duration(milliseconds) {
  if (milliseconds === undefined) return "–";
  if (milliseconds < 1) return `${milliseconds.toFixed(2)}\u00a0ms`;
  if (milliseconds < 10) return `${milliseconds.toFixed(1)}\u00a0ms`;
  if (milliseconds < 10_000) return `${whole.format(Math.round(milliseconds))}\u00a0ms`;
  return `${(milliseconds / 1000).toFixed(1)}\u00a0s`;
}

/** Formats a time span in the largest unit of which there are two, as in 90 s or 3 h. */
export function age(milliseconds) {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  const [unit, length] = [["d", 86_400], ["h", 3600], ["min", 60], ["s", 1]].find(([, size]) => seconds >= 2 * size) ?? ["s", 1];
  return `${whole.format(Math.floor(seconds / length))}\u00a0${unit}`;
}

/** Formats a size with three digits, as in 9.41 kB, and a non-breaking space. */
export function bytes(value) {
  const [number, unit] = value < 1000 ? [value, "B"] : value < 1_000_000 ? [value / 1000, "kB"] : [value / 1_000_000, "MB"];
  return `${number < 100 ? Number(number.toPrecision(3)) : Math.round(number)}\u00a0${unit}`;
}

/** Shortens a text to `limit` characters by omitting its middle. */
export function shortened(text, limit = 200) {
  if (text.length <= limit) return text;
  const half = Math.floor(limit / 2);
  return `${text.slice(0, half)}…${text.slice(-half)}`;
}

/** Returns the end of a text, which is the most specific part of a URL. */
export const tail = (text, limit) => (text.length <= limit ? text : `…${text.slice(1 - limit)}`);

const names = { memory: "cache", store: "result store", "source-cache": "source cache", network: "network", coalesced: "coalesced" };

/** Returns the display name of an event's `origin`. */
export const originName = (origin) => names[origin] ?? shortened(String(origin), 40);
