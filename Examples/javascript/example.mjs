// Submits a job, follows its events and writes the image to a file: node example.mjs GATEWAY SOURCE FILE.
// Set HALCYON_KEY if the gateway requires a key.
import { writeFile } from "node:fs/promises";
// In a project with the package: from "halcyon-client".
import { Client, JobFailed } from "../../clients/javascript/index.js";

const [gateway, source, file] = process.argv.slice(2);
if (!file) {
  console.error("usage: node example.mjs GATEWAY SOURCE FILE");
  process.exit(2);
}
const client = new Client(gateway, { key: process.env.HALCYON_KEY });
const after = await client.cursor();
const { id } = await client.submit({ source, width: 400, height: 300 });
for await (const { event } of client.events({ jobs: [id], after })) {
  if (!event) continue;
  console.log(event.type.split(".").pop());
  if (event.type === "halcyon.image.started" || event.type === "halcyon.image.progress") continue;
  if (event.type === "halcyon.image.ready") {
    const image = await client.fetch(event.data.variants[0]);
    await writeFile(file, Buffer.from(await image.arrayBuffer()));
  } else {
    if (event.type === "halcyon.image.failed") console.error(new JobFailed(event.data).message);
    process.exitCode = 1;
  }
  break;
}
