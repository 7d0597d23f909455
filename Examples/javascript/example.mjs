// Submits a job, follows its events and writes the image to a file: node example.mjs GATEWAY SOURCE FILE.
// Set HALCYON_KEY if the gateway requires a key.
import { writeFile } from "node:fs/promises";
import { Halcyon, JobEnded } from "./halcyon.mjs";

const [gateway, source, file] = process.argv.slice(2);
const halcyon = new Halcyon(gateway, { key: process.env.HALCYON_KEY });
const after = await halcyon.cursor();
const { id } = await halcyon.submit({ source, width: 400, height: 300, contentMode: "scaleAspectFill" });
for await (const { event } of halcyon.events({ jobs: [id], after })) {
  if (!event) continue;
  const what = event.type.split(".").pop();
  console.log(what);
  if (["started", "progress"].includes(what)) continue;
  if (what === "ready") {
    const picture = await halcyon.delivered(event.data.variants[0]);
    await writeFile(file, Buffer.from(await picture.arrayBuffer()));
  } else {
    console.error(new JobEnded(event).message);
    process.exitCode = 1;
  }
  break;
}
