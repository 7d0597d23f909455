// Compiled with tsc --strict against the installed package: the declarations are complete, and refuse wrong types.
import { Client, encodeJob, FailureCode, HalcyonError, JobFailed, Problem, ProblemKind, processors, resultKeys, sources, URLSigner } from "halcyon-client";
import type { Batch, HalcyonEvent, Image, Job, Ready } from "halcyon-client";

const client = new Client("http://127.0.0.1:8080", { key: "secret", retryTimeout: 5 });
const job: Job = {
  source: sources.initials("JD", { background: "#306ba6" }),
  variants: [{ name: "large", width: 1600, format: "avif" }],
  trim: { tolerance: 20 },
  position: "topLeft",
  before: ["normalize", processors.pad({ top: 2 }, { fill: "edge" })],
  processors: [
    processors.roundCorner({ widthFraction: 0.5 }), { posterize: { levels: 4 } }, "blackWhite",
    processors.text("A", "DejaVu Sans", { offset: { x: -2 } }),
  ],
};

export async function uses(signal: AbortSignal): Promise<string> {
  const { blob, variant }: Image = await client.image(job, { timeout: 5, signal });
  const ready: Ready = await client.run(job);
  const batch: Batch = await client.waitForBatch((await client.submitBatch([job], { priority: "low" })).id);
  for await (const { event, gap } of client.events({ types: ["ready", "failed"], signal })) {
    if (event?.type === "halcyon.image.ready") console.log(event.data.variants[0].sha256);
    if (gap !== undefined) console.log(gap);
  }
  try {
    await client.wait("id");
  } catch (error) {
    if (error instanceof JobFailed && error.code === FailureCode.notFound) console.log(error.retryable);
    if (error instanceof Problem && error.kind === ProblemKind.notFound) console.log(error.retryAfter);
    if (error instanceof HalcyonError) console.log(error.isTransient);
  }
  await client.putPreset("card", { width: 320 }, { overridable: ["width"] });
  const url: string = new URLSigner(client.url, "1", "secret").render(job, { lifetime: 60 });
  return [blob.type, variant.sha256, ready.timings.total, batch.counts.failed, encodeJob(job), resultKeys(job)[0], url].join();
}

export function name(event: HalcyonEvent): string {
  return event.type === "halcyon.batch.completed" ? event.data.batch.id : event.id;
}

// @ts-expect-error a job needs a source
const withoutSource: Job = { width: 400 };
// @ts-expect-error there is no such format
const withFormat: Job = { source: "initials:A", format: "bmp" };
// @ts-expect-error a width is a number
const withWidth: Job = { source: "initials:A", width: "400" };
// @ts-expect-error there is no such option
void client.image(job, { patience: 5 });
export const refused = [withoutSource, withFormat, withWidth];
