// Draws the statistics: the tiles, the throughput chart, and the bar of cache statuses.

import { byId, element, say, svg } from "./elements.js";
import { count, duration, originName, period, rate, share, short, timeOfDay } from "./format.js";

/** Dimensions of the chart in pixels. Its width is that of its container. */
const [height, left, bottom] = [160, 48, 22];

/** Returns 1, 2 or 5 times a power of ten, at least `value`. */
function niceTop(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 0.2)));
  return [1, 2, 5, 10].map((step) => step * power).find((top) => top >= value * 0.999);
}

/** The throughput chart. Its elements are reused; only their positions change. */
class Throughput {
  #target;
  #width = 0;
  #bars = [];
  #levels;
  #chart;
  #group = svg("g");
  #start = svg("text", { x: left, y: height - 4 });
  #now = svg("text", { y: height - 4, "text-anchor": "end" }, "now");

  constructor(target) {
    this.#target = target;
    this.#levels = [0, 0.5, 1].map((part) => {
      const y = yOf(part);
      return {
        part, line: svg("line", { x1: left, y1: y, y2: y }),
        label: svg("text", { x: left - 6, y: y + 4, "text-anchor": "end" }),
      };
    });
    // Failures are hatched, so that they are not distinguished by color alone.
    const hatch = svg("pattern", { id: "hatch", width: 4, height: 4, patternUnits: "userSpaceOnUse" },
      svg("rect", { width: 4, height: 4, class: "hatch-ground" }),
      svg("path", { d: "M-1 1l2-2M0 4l4-4M3 5l2-2", class: "hatch-line" }));
    this.#chart = svg("svg", { role: "img", "aria-label": "Jobs per second, not loaded yet" }, svg("defs", {}, hatch),
      ...this.#levels.flatMap(({ line, label }) => [line, label]),
      this.#group, this.#start, this.#now);
    target.replaceChildren(this.#chart);
  }

  /** @param bars - the jobs per second, oldest first, in a period of this many seconds. */
  draw(bars, seconds) {
    this.#fit(this.#target.clientWidth, bars.length);
    say(this.#start, `${seconds % 3600 === 0 ? `${seconds / 3600} h` : `${Math.round(seconds / 60)} min`} ago`);
    const highest = Math.max(...bars.map(({ ready, failed }) => ready + failed));
    const top = niceTop(highest);
    for (const { part, label } of this.#levels) say(label, rate(part * top));
    bars.forEach(({ ready, failed }, index) => {
      place(this.#bars[index].ready, 0, ready / top);
      place(this.#bars[index].failed, ready / top, (ready + failed) / top);
    });
    // The last bar is incomplete.
    const { ready, failed } = bars.at(-2) ?? bars.at(-1);
    this.#chart.setAttribute("aria-label",
      `Jobs per second over the ${period(seconds)}: currently ${rate(ready)} ready and ${rate(failed)} failed, ` +
      `at most ${rate(highest)} in total`);
  }

  /** Uses pixels as units, so that text has its normal size on narrow screens. */
  #fit(width, number) {
    if (width === this.#width && number === this.#bars.length) return;
    this.#width = width;
    if (number !== this.#bars.length) {
      this.#bars = Array.from({ length: number }, () => ({
        ready: svg("rect", { class: "ready" }), failed: svg("rect", { class: "failed" }),
      }));
      this.#group.replaceChildren(...this.#bars.flatMap(({ ready, failed }) => [ready, failed]));
    }
    this.#chart.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.#now.setAttribute("x", width);
    for (const { line } of this.#levels) line.setAttribute("x2", width);
    const step = Math.max(0, width - left) / this.#bars.length;
    this.#bars.forEach(({ ready, failed }, index) => {
      for (const bar of [ready, failed]) {
        bar.setAttribute("x", left + step * (index + 0.1));
        bar.setAttribute("width", step * 0.8);
      }
    });
  }
}

const yOf = (part) => 8 + (height - bottom - 8) * (1 - part);

function place(bar, from, to) {
  bar.setAttribute("y", yOf(to));
  bar.setAttribute("height", Math.max(0, yOf(from) - yOf(to)));
}

/** A bar that is divided by cache status, with a legend. */
class Origins {
  #parts = {};
  #target;

  constructor(target) { this.#target = target; }

  #build(origins) {
    const [bar, list] = [element("div", { className: "parts" }), element("ul", { className: "legend" })];
    for (const origin of origins) {
      const [part, number] = [element("span", { className: `part ${origin}` }), element("b")];
      bar.append(part);
      list.append(
        element("li", {}, element("span", { className: `swatch ${origin}` }), `${originName(origin)} `, number));
      this.#parts[origin] = { part, number };
    }
    bar.setAttribute("aria-hidden", "true");
    this.#target.replaceChildren(bar, list);
  }

  draw(origins) {
    if (Object.keys(this.#parts).length === 0) this.#build(Object.keys(origins));
    for (const [origin, number] of Object.entries(origins)) {
      this.#parts[origin].part.style.flexGrow = number;
      say(this.#parts[origin].number, count(number));
    }
  }
}

/** The figures of a period, which the gateway counts. */
export class Figures {
  #throughput = new Throughput(byId("throughput"));
  #origins = new Origins(byId("origins"));

  /** @param history - the response of `/v1/history`. */
  draw({ ended, origins, latency, bars, seconds, step, since, now }) {
    const title = period(seconds);
    say(byId("figures-title"), title[0].toUpperCase() + title.slice(1));
    const { ready, failed } = ended;
    for (const [id, value] of [["ready", ready], ["failed", failed]]) {
      say(byId(id), short(value));
      byId(id).title = count(value);
    }
    say(byId("error-rate"), share(failed, ready + failed));
    for (const name of ["p50", "p95", "p99"]) say(byId(name), duration(latency[name]));
    say(byId("hits"), share(origins.memory, ready));
    say(byId("coalesced"), share(origins.coalesced, ready));
    // Shortly after its start, a gateway does not know the whole period.
    const isPartial = Date.parse(since) > Date.parse(now) - seconds * 1000 + 1000;
    say(byId("since"), isPartial ? `The gateway has counted since ${timeOfDay(since)}. ` : "");
    const perSecond = bars.map((bar) => ({ ready: bar.ready / step, failed: bar.failed / step }));
    this.#throughput.draw(perSecond, seconds);
    this.#origins.draw(origins);
  }
}
