// The timings of a job, stage by stage.

import { element, svg } from "./elements.js";
import { duration } from "./format.js";

const stages = ["queued", "waited", "fetch", "decode", "process", "encode", "store"];

/** Creates a table with the name of each stage, a bar that starts at the end of the previous one, and its duration. */
export function waterfall(timings) {
  const known = stages.filter((stage) => typeof timings[stage] === "number");
  const sum = known.reduce((all, stage) => all + timings[stage], 0);
  const whole = Math.max(sum, (timings.queued ?? 0) + (timings.total ?? 0), 0.001);
  let start = 0;
  const rows = known.map((stage) => {
    const bar = svg("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
      svg("rect", {
        x: (100 * start) / whole, width: Math.max(0.5, (100 * timings[stage]) / whole), height: 10, class: stage,
      }));
    start += timings[stage];
    return element("tr", {},
      element("th", { scope: "row" }, stage), element("td", { className: "bar" }, bar),
      element("td", {}, duration(timings[stage])));
  });
  return element("table", { className: "waterfall" },
    element("caption", {}, `From receiving the job to publishing its event: ${duration(timings.total)}`), element("tbody", {}, ...rows));
}
