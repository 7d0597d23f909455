// Formats numbers, times and names for display.

const whole = new Intl.NumberFormat("en");
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
const clock = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
const date = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });

export const count = (value) => whole.format(value);

/** Formats a number for a tile: six digits, then shortened, as in 1.23M. */
export const short = (value) => (value < 1_000_000 ? whole.format(value) : compact.format(value));

/** Formats a rate in events per second. */
export const rate = (value) => (value === 0 || value >= 10 ? short(Math.round(value)) : String(Number(value.toPrecision(2))));

/** Formats a share as a percentage; a dash if the whole is 0. */
export const share = (part, all) => (all === 0 ? "–" : `${Math.round((100 * part) / all)}\u00a0%`);

/** Formats milliseconds with two or three digits; a dash if undefined. */
export function duration(milliseconds) {
  if (milliseconds === undefined) return "–";
  const [value, unit] = milliseconds < 1000 ? [milliseconds, "ms"]
    : milliseconds < 120_000 ? [milliseconds / 1000, "s"]
    : milliseconds < 7_200_000 ? [milliseconds / 60_000, "min"] : [milliseconds / 3_600_000, "h"];
  const digits = value < 1 ? 2 : value < 100 ? 3 : 0;
  return `${digits === 0 ? whole.format(Math.round(value)) : Number(value.toPrecision(digits))}\u00a0${unit}`;
}

/** Formats a time span in the largest unit of which there are two, as in 90 s or 3 h. */
export function age(milliseconds) {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  const [unit, length] = [["d", 86_400], ["h", 3600], ["min", 60], ["s", 1]].find(([, size]) => seconds >= 2 * size) ?? ["s", 1];
  return `${whole.format(Math.floor(seconds / length))}\u00a0${unit}`;
}

/** Formats the time of day; an empty text if it is invalid. */
export const timeOfDay = (text) => (Number.isNaN(Date.parse(text)) ? "" : clock.format(new Date(text)));
/** Formats a date and time; an empty text if it is invalid. */
export const dateTime = (text) => (Number.isNaN(Date.parse(text)) ? "" : date.format(new Date(text)));

/** Formats a size with three digits, as in 9.41 kB, and a non-breaking space. */
export function bytes(value) {
  const [number, unit] = value < 1000 ? [value, "B"] : value < 1_000_000 ? [value / 1000, "kB"]
    : value < 1_000_000_000 ? [value / 1_000_000, "MB"] : [value / 1_000_000_000, "GB"];
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

/** Names a period in seconds, as in "last 5 minutes". */
export function period(seconds) {
  const [number, unit] = seconds % 3600 === 0 ? [seconds / 3600, "hour"] : [Math.round(seconds / 60), "minute"];
  return number === 1 ? `last ${unit}` : `last ${number} ${unit}s`;
}
