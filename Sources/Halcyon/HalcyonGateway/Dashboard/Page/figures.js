// Draws the statistics: the tiles, the throughput chart, and the bar of cache statuses.

import { byId, element, say, svg } from "./elements.js";
import { count, duration, originName, rate, share } from "./format.js";
import { span } from "./measures.js";

/** Dimensions of the chart in pixels. Its width is that of its container. */
const [height, left, bottom] = [160, 40, 22];

/** Returns 1, 2 or 5 times a power of ten, at least `value`. */
function niceTop(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 0.2)));
  return [1, 2, 5, 10].map((step) => step * power).find((top) => top >= value * 0.999);
}

/** The throughput chart. Its elements are reused; only their positions change. */
class Throughput {
  #target;
  #width = 0;
  #bars;
  #levels;
  #chart;
  #now = svg("text", { y: height - 4, "text-anchor": "end" }, "now");

  constructor(target, number) {
    this.#target = target;
    this.#bars = Array.from({ length: number }, () => ({
      ready: svg("rect", { class: "ready" }), failed: svg("rect", { class: "failed" }),
    }));
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
    this.#chart = svg("svg", { role: "img" }, svg("defs", {}, hatch),
      ...this.#levels.flatMap(({ line, label }) => [line, label]),
      ...this.#bars.flatMap(({ ready, failed }) => [ready, failed]),
      svg("text", { x: left, y: height - 4 }, `${span / 60} min ago`), this.#now);
    target.replaceChildren(this.#chart);
  }

  draw(bars) {
    this.#fit(this.#target.clientWidth);
    const highest = Math.max(...bars.map(({ ready, failed }) => ready + failed));
    const top = niceTop(highest);
    for (const { part, label } of this.#levels) say(label, rate(part * top));
    bars.forEach(({ ready, failed }, index) => {
      place(this.#bars[index].ready, 0, ready / top);
      place(this.#bars[index].failed, ready / top, (ready + failed) / top);
    });
    // The last bar is incomplete.
    const { ready, failed } = bars.at(-2);
    this.#chart.setAttribute("aria-label",
      `Jobs per second over the last ${span / 60} minutes: currently ${rate(ready)} ready and ${rate(failed)} failed, ` +
      `at most ${rate(highest)} in total`);
  }

  /** Uses pixels as units, so that text has its normal size on narrow screens. */
  #fit(width) {
    if (width === this.#width) return;
    this.#width = width;
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

  constructor(target, origins) {
    const [bar, list] = [element("div", { className: "parts" }), element("ul", { className: "legend" })];
    for (const origin of origins) {
      const [part, number] = [element("span", { className: `part ${origin}` }), element("b")];
      bar.append(part);
      list.append(
        element("li", {}, element("span", { className: `swatch ${origin}` }), `${originName(origin)} `, number));
      this.#parts[origin] = { part, number };
    }
    bar.setAttribute("aria-hidden", "true");
    target.replaceChildren(bar, list);
  }

  draw(origins) {
    for (const [origin, number] of Object.entries(origins)) {
      this.#parts[origin].part.style.flexGrow = number;
      say(this.#parts[origin].number, count(number));
    }
  }
}

export class Figures {
  #measures;
  #throughput;
  #origins;

  constructor(measures) {
    this.#measures = measures;
    const { bars, origins } = measures.summary();
    this.#throughput = new Throughput(byId("throughput"), bars.length);
    this.#origins = new Origins(byId("origins"), Object.keys(origins));
  }

  draw() {
    const { ready, failed, origins, bars, percentile } = this.#measures.summary();
    say(byId("ready"), count(ready));
    say(byId("failed"), count(failed));
    for (const part of [50, 95, 99]) say(byId(`p${part}`), duration(percentile(part / 100)));
    say(byId("hits"), share(origins.memory, ready));
    say(byId("coalesced"), share(origins.coalesced, ready));
    this.#throughput.draw(bars);
    this.#origins.draw(origins);
  }
}
