// Checks the installed package against the gateway in the environment (clients/conformance/behaviors.json).
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import {
  Client, ConnectionFailed, encodeJob, FailureCode, HalcyonError, InvalidResponse, JobCancelled, JobFailed, jobTopic, JobTimeout, NotDelivered, Problem,
  ProblemKind, processors, resultKeys, sources, sourceText, TooLarge, URLSigner, variantTexts,
} from "halcyon-client";
import { cuttingProxy, dimensions, flakyGateway, rawGateway } from "./servers.mjs";

const { HALCYON_URL: url, HALCYON_KEY: key, HALCYON_SOURCES: origin, HALCYON_SIGNING_KEY: signing } = process.env;
const run = `javascript-${process.pid}-${Date.now()}`;
const client = new Client(url, { key });
const { equal, deepEqual, ok } = assert;

let ids = 0;
const newID = (what = "job") => `${run}-${what}-${ids++}`;
const sleep = (time) => new Promise((resolve) => setTimeout(resolve, time));
const buffer = async (blob) => Buffer.from(await blob.arrayBuffer());
const name = (event) => event.type.replace(/^halcyon\.(image\.)?/, "");
const initials = (count) => Array.from({ length: count }, (_, n) => `initials:${String.fromCharCode(65 + (n % 26))}A`);

/** The error of a call. */
async function rejected(body) {
  let value;
  try {
    value = await body();
  } catch (error) {
    return error;
  }
  assert.fail(`expected an error, and got ${JSON.stringify(value)}`);
}

/** The problem of a call, which must be of a kind. */
async function problem(kind, body) {
  const error = await rejected(body);
  ok(error instanceof Problem && error instanceof HalcyonError, error);
  equal(error.kind, kind, error.message);
  return error;
}

/** Checks a file against the event: size, dimensions and SHA-256. */
async function checkFile(blob, ready, size, index = 0) {
  const [content, variant] = [await buffer(blob), ready.variants[index]];
  equal(content.length, variant.bytes);
  equal(createHash("sha256").update(content).digest("hex"), variant.sha256);
  deepEqual(dimensions(content), size);
  deepEqual([variant.width, variant.height], size);
}

/** The events of a job after a cursor, until its end. */
async function eventsUntilEnd(job, after) {
  const found = [];
  for await (const { event, gap } of client.events({ jobs: [job], after })) {
    ok(event, gap);
    found.push(event);
    if (["ready", "failed", "cancelled", "superseded"].includes(name(event))) return found;
  }
}

/** The first message of a subscription, which is ended. */
async function first(messages) {
  for await (const message of messages) return message;
}

/** Writes a job to Kafka. */
function produce(job) {
  return new Promise((resolve, reject) => {
    const program = spawn("sh", ["-c", process.env.HALCYON_PRODUCE], { stdio: ["pipe", "inherit", "inherit"] });
    program.on("exit", (code) => (code === 0 ? resolve() : reject(new Error(`the producer exited with ${code}`))));
    program.stdin.end(`${encodeJob(job)}\n`);
  });
}

/** A complete response. */
const response = (body) => `HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`;

/** Broken responses with an image, and the ends of their connections. */
const broken = {
  closed: [response("image").slice(0, -3), "close"],
  reset: [response("image").slice(0, -3), "reset"],
  silent: [response("image").slice(0, -3), "silence"],
  malformed: ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nno size\r\n", "close"],
};

/** Answers of a gateway that breaks the first response with each image, and the first two streams of three events. */
function breaking() {
  const attempts = {};
  return (head) => {
    const [, target] = head.split(" ");
    const attempt = (attempts[target] = (attempts[target] ?? 0) + 1);
    if (target !== "/v1/events") return attempt === 1 ? broken[target.split("/").pop()] : [response("image"), "close"];
    const seen = Number(/last-event-id: *(\d+)/i.exec(head)?.[1] ?? 0);
    const events = [1, 2, 3].slice(seen).map((id) => {
      const event = { id: `${id}`, type: "halcyon.image.started", time: "2026-11-21T10:31:07Z", data: { job: { id: "j" } } };
      return `id: ${id}\ndata: ${JSON.stringify(event)}\n\n`;
    });
    const text = attempt > 2 ? events.join("") : `${events[0]}id: 9\ndata: {"id"`;
    return [`HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nretry: 1\n\n${text}`, attempt === 2 ? "reset" : "silence"];
  };
}

const behaviors = {
  async submit() {
    const job = { source: `${origin}/coffee.jpg`, width: 100, height: 80, id: newID(), priority: "high" };
    const { id, lane, keys } = await client.submit(job);
    deepEqual([id, lane, keys], [job.id, "high", resultKeys(job)]);
    equal((await client.submit(job)).id, job.id);
    deepEqual((await client.submit({ ...job, id: newID(), widht: 3 })).unknownFields, ["widht"]);
    const [first, second] = await client.submitAll([{ source: "initials:A", width: 8 }, { source: "initials:B", width: -1 }]);
    ok(first.id && !(first instanceof Problem));
    ok(second instanceof Problem && second.kind === ProblemKind.invalidJob);
    return keys[0];
  },

  async wait() {
    const { id } = await client.submit({ source: `${origin}/chelsea.jpg`, variants: [{ width: 120, height: 90 }, { name: "s", width: 40 }] });
    const ready = await client.wait(id);
    const [first, second] = ready.variants;
    deepEqual([first.width, first.height, first.format, second.name, second.width], [120, 90, "jpeg", "s", 40]);
    equal(ready.job.id, id);
    ok(first.bytes > 500 && first.sha256.length === 64 && ready.source.format === "jpeg" && ready.timings.total >= 0);
    equal((await client.jobState(id, { wait: 5 })).state, "ready");
    return `${first.bytes} bytes`;
  },

  async submitAndWait() {
    const { blob, ready } = await client.image({ source: `${origin}/coffee.jpg`, width: 160, height: 120, format: "png", delivery: "inline" });
    await checkFile(blob, ready, [160, 120]);
    equal(blob.type, "image/png");
    const images = await client.images({ source: `${origin}/coffee.jpg`, variants: [{ width: 100, height: 50 }, { width: 50, height: 20 }] });
    deepEqual(await Promise.all(images.map(async (image) => dimensions(await buffer(image.blob)))), [[100, 50], [50, 20]]);
    return `${blob.size} bytes`;
  },

  async failureCodes() {
    const expected = {
      none: FailureCode.notFound, gone: FailureCode.gone, forbidden: FailureCode.forbidden, error: FailureCode.httpError,
      corrupt: FailureCode.corruptImage, text: FailureCode.unsupportedFormat,
    };
    for (const [file, code] of Object.entries(expected)) {
      const error = await rejected(() => client.run({ source: `${origin}/${file}.jpg`, width: 20 }));
      ok(error instanceof JobFailed, error);
      deepEqual([error.code, error.retryable, error.event.attempts], [code, code === "http_error", 1]);
    }
    const refused = await problem(ProblemKind.invalidJob, () => client.run({ source: "nothing:x" })).catch((error) => error);
    const [job, after] = [{ source: "nothing:x", id: newID() }, await client.cursor()];
    await produce(job);
    equal((await eventsUntilEnd(job.id, after)).pop().data.code, FailureCode.unsupportedSource, refused);
    const codes = "invalid_job unsupported_source blocked_address not_found gone forbidden http_error dns_error connect_error origin_unavailable " +
      "tls_error timeout too_many_redirects too_large too_many_pixels unsupported_format corrupt_image expired provider_error poison internal";
    deepEqual(Object.values(FailureCode).sort(), codes.split(" ").sort());
    return `${Object.keys(expected).length + 1} failures`;
  },

  async invalidJob() {
    const error = await problem(ProblemKind.invalidJob, () => client.submit({ source: `${origin}/coffee.jpg`, width: -1 }));
    deepEqual([error.status, error.code, error.attempts, error.isTransient], [400, "invalid_job", 1, false]);
    ok(error.detail.includes("width"));
    return error.detail;
  },

  async retryWithBackoff() {
    const accepted = { id: "flaky", lane: "normal", status: "/v1/jobs/flaky", images: [] };
    const flaky = await flakyGateway([[503, { "Retry-After": "1" }, {}], null, [202, {}, accepted], [400, {}, { type: "/problems/invalid-job" }]]);
    const patient = new Client(flaky.url, { retryTimeout: 120 });
    equal((await patient.submit({ source: "initials:A", width: 8 })).id, "flaky");
    equal(flaky.bodies.length, 3);
    ok(JSON.parse(flaky.bodies[0]).id);
    equal(new Set(flaky.bodies).size, 1);
    ok(flaky.times[1] - flaky.times[0] >= 990, flaky.times);
    await problem(ProblemKind.invalidJob, () => patient.submit({ source: "initials:A" }));
    equal(flaky.bodies.length, 4);
    flaky.close();
    const down = await flakyGateway(Array(20).fill([503, {}, {}]));
    equal((await rejected(() => new Client(down.url, { retryTimeout: 1 }).submit({ source: "initials:A" }))).status, 503);
    ok(down.bodies.length > 1 && down.bodies.length < 20, `${down.bodies.length}`);
    down.close();
    ok((await rejected(() => new Client("http://127.0.0.1:1", { retryTimeout: 0.5 }).submit({ source: "initials:A" }))) instanceof ConnectionFailed);
    return `pause of ${Math.round(flaky.times[1] - flaky.times[0])} ms`;
  },

  async timeout() {
    const [after, job] = [await client.cursor(), { source: `${origin}/hang/timeout`, width: 9, id: newID() }];
    const begun = performance.now();
    ok((await rejected(() => client.run(job, { timeout: 1 }))) instanceof JobTimeout);
    const took = performance.now() - begun;
    ok(took > 900 && took < 60_000, `${took}`);
    equal(name((await eventsUntilEnd(job.id, after)).pop()), "cancelled");
    return `${Math.round(took)} ms`;
  },

  async cancelWait() {
    const [after, job] = [await client.cursor(), { source: `${origin}/hang/abort`, width: 9, id: newID() }];
    const abort = new AbortController();
    const waiting = rejected(() => client.image(job, { signal: abort.signal }));
    await first(client.events({ types: ["started"], jobs: [job.id], after }));
    abort.abort();
    equal((await waiting).name, "AbortError");
    equal(name((await eventsUntilEnd(job.id, after)).pop()), "cancelled");
    // The gateway never responds. A request that is not aborted ends after 85 s.
    const early = new AbortController();
    const gateway = await rawGateway(() => (early.abort(), ["", "silence"]));
    const begun = performance.now();
    equal((await rejected(() => new Client(gateway.url).wait("x", { signal: early.signal }))).name, "AbortError");
    const took = performance.now() - begun;
    ok(took < 60_000, `${took}`);
    gateway.close();
    const ended = new AbortController();
    const stream = rejected(() => client.events({ jobs: ["nobody"], signal: ended.signal }).next());
    setTimeout(() => ended.abort(), 50);
    equal((await stream).name, "AbortError");
    return `${Math.round(took)} ms`;
  },

  async cancelJob() {
    const [after, job] = [await client.cursor(), { source: `${origin}/hang/cancel`, width: 9, id: newID() }];
    await client.submit(job);
    await first(client.events({ types: ["started"], jobs: [job.id], after }));
    equal(await client.cancel(job.id), true);
    const error = await rejected(() => client.wait(job.id));
    ok(error instanceof JobCancelled && error.jobID === job.id, error);
    const ended = await client.run({ source: "initials:E", width: 9 });
    // The gateway stores the end of a job a moment after those who wait have it.
    for (let attempt = 0; await client.cancel(ended.job.id); attempt++) {
      ok(attempt < 600);
      await sleep(100);
    }
    return job.id;
  },

  async subscribe() {
    const [after, job, other] = [await client.cursor(), newID(), newID()];
    for (const id of [other, job]) await client.run({ source: `${origin}/coffee.jpg?${id}`, width: 33, id, metadata: { n: [1, null] } });
    const found = await eventsUntilEnd(job, after);
    deepEqual(found.map(name).filter((type) => type !== "progress"), ["started", "ready"]);
    for (const event of found) deepEqual([event.data.job.id, event.data.job.metadata], [job, { n: [1, null] }]);
    const both = client.events({ types: ["ready"], jobs: [job, other], after });
    deepEqual([(await both.next()).value.event.data.job.id, (await both.next()).value.event.data.job.id].sort(), [job, other].sort());
    await both.return();
    await problem(ProblemKind.badRequest, () => client.events({ after: "nonsense" }).next());
    return found.map(name).join(" ");
  },

  async subscribeResume() {
    const [after, jobs] = [await client.cursor(), Array.from({ length: 5 }, () => newID())];
    for (const id of jobs) await client.run({ source: "initials:R", width: 21, id });
    const proxy = await cuttingProxy(url);
    const found = [];
    for await (const { event } of new Client(proxy.url, { key }).events({ types: ["ready"], jobs, after })) {
      found.push(event.data.job.id);
      if (found.length === jobs.length) break;
    }
    deepEqual(found.sort(), jobs.sort());
    equal(proxy.lastIDs.length, 2);
    equal(proxy.lastIDs[0], after);
    ok(proxy.lastIDs[1] && proxy.lastIDs[1] !== after);
    proxy.close();
    return `${found.length} events over 2 connections`;
  },

  async brokenResponse() {
    const gateway = await rawGateway(breaking());
    const reader = new Client(gateway.url, { readTimeout: 0.25 });
    const images = await Promise.all(Object.keys(broken).map(async (key) => (await reader.stored(key)).text()));
    deepEqual(images, Object.keys(broken).map(() => "image"));
    const cursors = [];
    for await (const { cursor } of reader.events({ after: "0" })) {
      cursors.push(cursor);
      if (cursors.length === 3) break;
    }
    deepEqual(cursors, ["1", "2", "3"]);
    gateway.close();
    return Object.keys(broken).join(", ");
  },

  async info() {
    const facts = await client.info({ source: `${origin}/coffee.jpg`, phash: true });
    const ready = await client.run({ source: `${origin}/coffee.jpg`, info: true, phash: true });
    deepEqual(ready.variants[0].info, facts);
    deepEqual([ready.variants[0].format, facts.format, facts.width], ["json", "jpeg", ready.variants[0].width]);
    equal(facts.phash.length, 16);
    equal((await client.info({ source: `${origin}/coffee.jpg`, info: { location: true } })).location, undefined);
    equal((await problem(ProblemKind.notFound, () => client.info({ source: `${origin}/none.jpg` }))).status, 404);
    return facts.phash;
  },

  async infoMembers() {
    const text = await readFile(process.env.HALCYON_INFO, "utf8");
    // Every object has a member of a later version. scripts/clients compares the file with the type SourceInfo.
    const facts = JSON.parse(text.replaceAll("{", '{"later": {}, '));
    const variant = { key: "halcyon:{00}:01", width: 640, height: 360, format: "json", bytes: 900, sha256: "0".repeat(64), info: facts };
    const data = { job: { id: "a" }, variants: [variant], origin: "network", timings: {} };
    const event = { id: "1", type: "halcyon.image.ready", time: "2026-11-21T10:31:07Z", data };
    const gateway = await flakyGateway([[200, {}, facts], [200, {}, { id: "a", state: "ready", event }]]);
    try {
      const reader = new Client(gateway.url);
      deepEqual(await reader.info({ source: "initials:A" }), facts);
      deepEqual((await reader.wait("a")).variants[0].info, facts);
    } finally {
      gateway.close();
    }
    return `${Object.keys(JSON.parse(text)).length} members`;
  },

  async fetchStored() {
    const ready = await client.run({ source: `${origin}/coffee.jpg`, width: 90, height: 60 });
    equal(ready.variants[0].data, undefined);
    await checkFile(await client.stored(ready.key), ready, [90, 60]);
    await checkFile(await client.fetch(ready.variants[0]), ready, [90, 60]);
    equal((await problem(ProblemKind.notFound, () => client.stored(`halcyon:{${"0".repeat(32)}}:${"0".repeat(32)}`))).status, 404);
    ok((await rejected(() => new Client(url, { key, maximumBytes: 100 }).stored(ready.key))) instanceof TooLarge);
    return ready.key;
  },

  async fetchInline() {
    const ready = await client.run({ source: `${origin}/coffee.jpg`, width: 70, height: 50, delivery: "inline" });
    ok(ready.variants[0].data);
    // There is no gateway at this address.
    await checkFile(await new Client("http://127.0.0.1:1", { retryTimeout: 0 }).fetch(ready.variants[0]), ready, [70, 50]);
    return `${ready.variants[0].bytes} bytes`;
  },

  async fetchOneRead() {
    const job = { source: `${origin}/no-store/coffee.jpg`, width: 1400, height: 1000, format: "png", upscale: true, cache: { store: false } };
    const ready = await client.run(job);
    const [variant] = ready.variants;
    ok(variant.data === undefined && variant.key.includes(":handoff:"), variant.key);
    await checkFile(await client.fetch(variant), ready, [1400, 1000]);
    await problem(ProblemKind.notFound, () => client.fetch(variant));
    return `${variant.bytes} bytes`;
  },

  async fetchStoreURL() {
    const ready = await client.run({ source: `${origin}/chelsea.jpg?${run}`, width: 88, height: 66, cache: { store: "required" } });
    const [variant] = ready.variants;
    ok(variant.url?.startsWith(`${origin}/store/`), variant.url);
    await checkFile(await client.fetch(variant), ready, [88, 66]);
    // A gateway that knows nothing, and one with gateway.redirectsToStore. The first response of the store to each URL breaks.
    const ignorant = await flakyGateway([[404, {}, { type: "/problems/not-found" }]]);
    await checkFile(await new Client(ignorant.url, { key }).fetch({ ...variant, url: `${variant.url}?broken=${run}-url` }), ready, [88, 66]);
    equal(ignorant.bodies.length, 1);
    ignorant.close();
    const redirect = [302, { Location: `${variant.url}?broken=${run}-redirect` }, {}];
    const redirecting = await flakyGateway([redirect, redirect, [302, { Location: "/v1/batches" }, {}]]);
    await checkFile(await new Client(redirecting.url, { key }).fetch(variant), ready, [88, 66]);
    equal(redirecting.bodies.length, 2);
    ok((await rejected(() => new Client(redirecting.url, { key }).fetch(variant))) instanceof InvalidResponse);
    redirecting.close();
    return variant.url;
  },

  async fetchPut() {
    const variants = [{ name: "large", width: 80, height: 60 }, { name: "small", width: 40, height: 30, format: "png" }];
    const put = `${origin}/put/${run}-{variant}.{format}`;
    const unstored = { maxAge: -1, cache: { store: false } };
    const ready = await client.run({ source: `${origin}/rocket.jpg`, variants, delivery: { put }, ...unstored });
    deepEqual(ready.variants.map((variant) => variant.put), [`${origin}/put/${run}-large.jpeg`, `${origin}/put/${run}-small.png`]);
    await checkFile(await client.fetch(ready.variants[0]), ready, [80, 60]);
    await checkFile(await client.fetch(ready.variants[1]), ready, [40, 30], 1);
    const image = await client.image({ source: `${origin}/rocket.jpg`, width: 60, height: 50, delivery: { put }, ...unstored });
    await checkFile(image.blob, image.ready, [60, 50]);
    await checkFile(await (await fetch(image.variant.put)).blob(), image.ready, [60, 50]);
    const secret = `${origin}/put/${run}-secret?signature=5f3a`;
    const other = { source: `${origin}/rocket.jpg`, width: 50, height: 40, delivery: { put: secret }, ...unstored };
    const error = await rejected(() => client.image(other));
    ok(error instanceof NotDelivered, error);
    equal((await fetch(secret)).status, 200);
    return image.variant.put;
  },

  async batchOfJobs() {
    const [id, jobs] = [newID("batch"), initials(10).map((source) => ({ source, width: 16 }))];
    const odd = [{ source: "initials:X", width: -5 }, { source: `${origin}/none.jpg`, width: 9 }];
    const { accepted, rejected: count, problems } = await client.submitBatch([...jobs, ...odd], { id });
    deepEqual([accepted, count, problems[0].line, problems[0].problem.kind], [11, 1, 11, ProblemKind.invalidJob]);
    const { total, ended, counts } = await client.waitForBatch(id);
    deepEqual([total, ended, counts], [11, 11, { ready: 10, failed: 1, cancelled: 0, superseded: 0 }]);
    ok((await client.batches()).some((batch) => batch.id === id));
    await problem(ProblemKind.conflict, () => client.submitBatch(jobs, { id }));
    const open = newID("batch");
    await client.submitBatch(jobs.slice(0, 4), { id: open, close: false });
    await client.submitBatch(jobs.slice(4), { id: open, first: 4, close: false });
    ok((await rejected(() => client.waitForBatch(open, { timeout: 0.5 }))) instanceof JobTimeout);
    await client.closeBatch(open, 10);
    equal((await client.waitForBatch(open)).counts.ready, 10);
    await problem(ProblemKind.notFound, () => client.batch(newID("nothing")));
    return `${ended} jobs`;
  },

  async batchOfTemplate() {
    const template = { width: 24, height: 24, format: "png" };
    const { id, accepted } = await client.submitTemplate(template, initials(5), { priority: "high" });
    equal(accepted, 5);
    equal((await client.waitForBatch(id)).counts.ready, 5);
    deepEqual(dimensions(await buffer(await client.stored(resultKeys({ ...template, source: "initials:CA" })[0]))), [24, 24]);
    const listed = await client.submitPrefix({ width: 24 }, "s3://no-such-bucket/2026/");
    equal(listed.prefix, "s3://no-such-bucket/2026/");
    const { error } = await client.waitForBatch(listed.id, { timeout: 300 });
    equal(error.code, "not_found");
    return error.message;
  },

  async batchFailures() {
    const missing = Array.from({ length: 7 }, (_, n) => `${origin}/none.jpg?${n}`);
    const { id } = await client.submitTemplate({ width: 9 }, [...missing, "initials:OK"]);
    equal((await client.waitForBatch(id)).counts.failed, 7);
    const found = await client.batchFailures(id);
    deepEqual(found.map((one) => [one.job, one.index, one.code]).sort(), missing.map((_, n) => [`${id}-${n}`, n, "not_found"]));
    ok(found.every((one) => one.message && one.record));
    deepEqual(await client.batchFailures(id, { start: 2, limit: 3 }), found.slice(2, 5));
    const one = { code: "gone", message: "gone", record: "" };
    const gateway = await flakyGateway([
      [200, {}, { failed: 2, failures: [{ job: "a", ...one }], next: "/v1/batches/x/failures?start=1&limit=1" }],
      [200, {}, { failed: 2, failures: [{ job: "b", ...one }] }],
    ]);
    deepEqual((await new Client(gateway.url).batchFailures("x")).map((failed) => failed.job), ["a", "b"]);
    gateway.close();
    return found[0].message;
  },

  async batchCancel() {
    const { id } = await client.submitTemplate({ width: 9 }, Array.from({ length: 4 }, (_, n) => `${origin}/hang/${run}-${n}`));
    await client.cancelBatch(id);
    equal((await client.waitForBatch(id)).counts.cancelled, 4);
    await problem(ProblemKind.conflict, () => client.cancelBatch(id));
    return "4 cancelled";
  },

  async batchRetry() {
    const source = `${origin}/put/${run}-late.jpg`;
    const { id } = await client.submitTemplate({ width: 30 }, [source, "initials:OK"]);
    equal((await client.waitForBatch(id)).counts.failed, 1);
    await fetch(source, { method: "PUT", body: await (await fetch(`${origin}/coffee.jpg`)).arrayBuffer() });
    const again = await client.retryBatch(id);
    deepEqual([again.accepted, again.missing], [1, 0]);
    const { counts } = await client.waitForBatch(again.id);
    deepEqual([counts.ready, counts.failed], [1, 0]);
    await problem(ProblemKind.conflict, () => client.retryBatch(again.id));
    return again.id;
  },

  async presetPut() {
    const [preset, job] = [`put-${run}`, { width: 32, height: 18, format: "webp" }];
    const registered = await client.putPreset(preset, job, { overridable: ["width"] });
    deepEqual(registered, { name: preset, version: 1, job, overridable: ["width"], origin: "registered" });
    deepEqual(await client.preset(preset), registered);
    equal((await client.putPreset(preset, job, { overridable: ["width"] })).version, 1);
    equal((await client.putPreset(preset, { width: 48, height: 18 })).version, 2);
    ok((await client.presets()).some((one) => one.name === preset));
    await client.deletePreset(preset);
    await problem(ProblemKind.notFound, () => client.preset(preset));
    await problem(ProblemKind.notFound, () => client.deletePreset(preset));
    return preset;
  },

  async presetJob() {
    const [preset, template] = [`job-${run}`, { width: 52, height: 34, format: "png" }];
    await client.putPreset(preset, template, { overridable: ["width"] });
    const { blob, ready, variant } = await client.image({ source: `${origin}/coffee.jpg`, preset: { name: preset, version: 1 } });
    await checkFile(blob, ready, [52, 34]);
    equal(blob.type, "image/png");
    deepEqual(ready.job.preset, { name: preset, version: 1 });
    const job = { source: `${origin}/coffee.jpg`, preset, width: 44 };
    equal((await client.run(job)).key, resultKeys(job, template)[0]);
    ok((await problem(ProblemKind.invalidJob, () => client.submit({ source: "initials:A", preset, height: 9 }))).detail.includes("height"));
    await client.deletePreset(preset);
    return variant.key;
  },

  async rerender() {
    const preset = `again-${run}`;
    const [job, changed] = [{ source: `${origin}/rocket.jpg?${run}`, preset }, { width: 58, height: 20, maxAge: 3600 }];
    await client.putPreset(preset, { width: 36, height: 20, maxAge: 3600 });
    await client.run(job);
    await client.putPreset(preset, changed);
    const [key] = resultKeys(job, changed);
    await problem(ProblemKind.notFound, () => client.stored(key));
    let image;
    // Workers hear of a change within about a second.
    for (let attempt = 0; attempt < 120 && !image; attempt++) {
      if (attempt) await sleep(250);
      const submission = await client.rerender(preset, { priority: "high" });
      equal(submission.preset, preset);
      const batch = await client.waitForBatch(submission.id);
      deepEqual([batch.total, batch.counts.ready, batch.preset], [1, 1, preset]);
      image = await client.stored(key).catch((error) => equal(error.kind, ProblemKind.notFound));
    }
    deepEqual(dimensions(await buffer(image)), [58, 20]);
    await client.deletePreset(preset);
    return key;
  },

  async signedURL() {
    const example = new URLSigner("https://images.example.org", "1", "0123456789abcdef0123456789abcdef");
    const expected = "fa2e1359ceb8e94b2c9b81f45da9ee7ad5487a0497cad0e391f2e397db998c14";
    const documented = example.render({ source: "https://example.org/cat.jpg", width: 400 }, { expires: 1790000000 });
    ok(documented.endsWith(`width=400&keyId=1&expires=1790000000&signature=${expected}`), documented);
    const signer = new URLSigner(url, signing.slice(0, signing.indexOf(":")), signing.slice(signing.indexOf(":") + 1));
    const cropRect = { x: 0.1, y: 0, width: 0.5, height: 1 };
    const job = { source: `${origin}/coffee.jpg`, width: 64, height: 48, cropRect, gravity: { x: 0.5, y: 0.25 }, tags: ["a", "b"] };
    const read = async (address) => {
      const answer = await fetch(address);
      return [answer.status, Buffer.from(await answer.arrayBuffer())];
    };
    const signed = signer.render(job, { lifetime: 60 });
    const [status, body] = await read(signed);
    deepEqual([status, dimensions(body)], [200, [64, 48]]);
    // The parameters mean the same as the fields of the job.
    deepEqual(await buffer(await client.stored(resultKeys(job)[0])), body);
    deepEqual(await read(signer.image(resultKeys(job)[0], { lifetime: 60 })), [200, body]);
    const preset = `url-${run}`;
    await client.putPreset(preset, { width: 31, height: 17 });
    const [presetStatus, presetBody] = await read(signer.render({ source: `${origin}/coffee.jpg`, preset }, { lifetime: 60 }));
    deepEqual([presetStatus, dimensions(presetBody)], [200, [31, 17]]);
    await client.deletePreset(preset);
    const stream = new AbortController();
    equal((await fetch(signer.events({ types: ["ready"] }, { lifetime: 60 }), { signal: stream.signal })).status, 200);
    stream.abort();
    equal((await read(signed.replace("width=64", "width=65")))[0], 403);
    equal((await read(signer.render(job, { expires: 1 })))[0], 403);
    equal((await read(signed.slice(0, signed.indexOf("&keyId"))))[0], 401);
    deepEqual(dimensions(await buffer(await client.render(job))), [64, 48]);
    return signed.split("?")[0];
  },

  async resultKeys() {
    const { vectors } = JSON.parse(await readFile(process.env.HALCYON_KEY_VECTORS, "utf8"));
    for (const { name, job, ...expected } of vectors)
      deepEqual({ sourceText: sourceText(job), variantTexts: variantTexts(job), keys: resultKeys(job) }, expected, name);
    const job = {
      source: `${origin}/coffee.jpg?keys`, width: 61, height: 43, screenScale: 2, quality: 70, background: "hsl(30 55% 42%)",
      processors: [processors.roundCorner({ widthFraction: 0.2 }), processors.blur(1.5)],
    };
    equal((await client.run(job)).key, resultKeys(job)[0]);
    // The margins around the letters are removed, and the event says what remained.
    const letters = { source: sources.initials("JD"), trim: { tolerance: 20 }, before: [processors.blackWhite()], format: "png" };
    const [{ key, width, height, trim }] = (await client.run(letters)).variants;
    assert(trim.x > 0 && trim.y > 0);
    deepEqual([key, trim.width, trim.height], [resultKeys(letters)[0], width, height]);
    assert.throws(() => resultKeys({ source: "initials:A", preset: "card" }), RangeError);
    return `${vectors.length} vectors`;
  },

  async kafkaJob() {
    const expected = JSON.parse(await readFile(process.env.HALCYON_JOB, "utf8"));
    const p = processors;
    const typed = {
      ...expected,
      source: sources.url("https://example.org/cat.jpg?size=large", "cat-7"),
      alternatives: [
        "s3://pictures/cat.jpg",
        sources.initials("JD", { background: "#306ba6", foreground: "white" }),
        sources.video("https://example.org/cat.mp4", 1.5),
      ],
      processors: [
        p.roundCorner(12, { corners: ["topLeft", "topRight"], background: "white" }), p.resize(200, 100, { mode: "aspectFit" }),
        p.crop(100, 80, { x: 0.25, y: 0.75 }), p.blur(2.5), p.tint("#336699"), p.overlay("black", { fraction: 0.3 }),
        p.overlayImage("https://example.org/frame.png", { opacity: 0.8 }), p.blend("multiply", "red", { opacity: 0.5 }),
        p.colorControls({ brightness: 0.1, contrast: 1.2, saturation: 0.9, exposure: 0.5 }), p.blackWhite(),
        p.border(2, { color: "navy", radius: { widthFraction: 0.5 } }), p.downsample(90, 90), p.sharpen({ radius: 0.7, amount: 1.5 }), p.pixelate(8),
        p.watermark("file:///srv/logo.png", { position: "topRight", margin: 4, widthFraction: 0.2, opacity: 0.6, tiled: false }),
        p.rotate(90, { background: "transparent" }), p.flip("both"),
        p.pad({ top: 1, right: 2, bottom: 3, left: 4 }, { fill: "color", color: "gold" }), p.pad(10, { fill: "mirror" }),
        p.text("Größe\n50 \\ 100", "DejaVu Sans", {
          bold: true, italic: true, size: 24, width: 180, height: 60, align: "center", color: "white", outlineWidth: 2, outlineColor: "#333333",
          opacity: 0.9, position: "bottom", margin: 8, offset: { x: -3, y: 1.5 },
        }),
        p.mask("heart"), p.maskImage("https://example.org/mask.png"), p.hue(30), p.gamma(1.8), p.normalize({ lower: 1, upper: 99 }),
        p.duotone("navy", "gold"), p.blurFaces({ amount: 0.5, margin: 0.1, confidence: 0.4 }), p.pixelateFaces({ cells: 6, margin: 0.1, confidence: 0.4 }), p.overlayImage("https://example.org/frame.png", { opacity: 1, mode: "softLight" }),
        p.watermark("file:///srv/logo.png", {
          position: "left", margin: 2, scale: 0.5, offset: { x: 5, y: -6 }, opacity: 1, mode: "luminosity", tiled: true,
        }),
      ],
    };
    deepEqual(JSON.parse(encodeJob(typed)), expected);
    deepEqual([jobTopic(typed, "x."), jobTopic({ source: "initials:A" })], ["x.jobs.high", "halcyon.jobs"]);
    deepEqual(JSON.parse(encodeJob({ source: "initials:A", notBefore: new Date(Date.UTC(2026, 10, 21)) })).notBefore, "2026-11-21T00:00:00.000Z");
    const [after, job] = [await client.cursor(), { source: `${origin}/coffee.jpg`, width: 77, height: 55, id: newID("kafka"), metadata: "größer" }];
    await produce(job);
    const event = (await eventsUntilEnd(job.id, after)).pop();
    deepEqual([name(event), event.data.job.metadata], ["ready", "größer"]);
    await checkFile(await client.fetch(event.data.variants[0]), event.data, [77, 55]);
    return event.id;
  },

  async unauthorized() {
    let error;
    for (const wrong of [undefined, "0".repeat(32)]) {
      error = await problem(ProblemKind.unauthorized, () => new Client(url, { key: wrong }).submit({ source: "initials:A" }));
      deepEqual([error.status, error.attempts], [401, 1]);
    }
    await problem(ProblemKind.unauthorized, () => new Client(url).cursor());
    return error.detail;
  },
};

const names = process.argv.slice(2);
for (const behavior of names.length ? names : Object.keys(behaviors)) {
  let [passed, detail] = [true, ""];
  try {
    detail = await behaviors[behavior]();
  } catch (error) {
    console.error(error);
    [passed, detail] = [false, `${error.name}: ${error.message}`];
    process.exitCode = 1;
  }
  console.log(JSON.stringify({ behavior, ok: passed, detail }));
}
