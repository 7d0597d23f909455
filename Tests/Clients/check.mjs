// Checks the JavaScript client: check.mjs MODULE GATEWAY LOCKED_GATEWAY PHOTOGRAPH HANGING_SOURCE UNSTORED….
import assert from "node:assert/strict";

const [module, gateway, locked, photograph, hanging, ...unstored] = process.argv.slice(2);
const { Client, JobFailed, Problem, TooLarge } = await import(module);
const halcyon = new Client(gateway);

const failure = async (body) => {
  try {
    await body();
  } catch (error) {
    return error;
  }
  assert.fail("no error");
};
const bytes = async (blob) => new Uint8Array(await blob.arrayBuffer());

const { blob: jpeg } = await halcyon.image({ source: photograph, width: 100 });
assert.equal(jpeg.type, "image/jpeg");
assert.deepEqual([...(await bytes(jpeg)).slice(0, 2)], [0xff, 0xd8]);
assert.equal((await halcyon.image({ source: photograph, variants: [{ width: 40, format: "png" }] })).blob.type, "image/png");
const invalid = await failure(() => halcyon.submit({ source: photograph, width: -1 }));
assert.ok(invalid instanceof Problem && invalid.detail.includes("width"));
assert.deepEqual([invalid.status, invalid.kind, invalid.code], [400, "invalid-job", "invalid_job"]);
assert.equal((await failure(() => halcyon.jobState("nobody/s"))).kind, "not-found");
assert.equal((await failure(() => new Client(locked, { retryTimeout: 0 }).submit({ source: "initials:A" }))).kind, "unauthorized");
assert.equal((await failure(() => halcyon.events({ after: "nonsense" }).next())).kind, "bad-request");
assert.ok((await new Client(locked, { key: "0123456789abcdef0123456789abcdef" }).image({ source: "initials:A", width: 9 })).blob.size);
for (const source of unstored) {
  for (const rule of [{ maxAge: -1 }, { cache: { memory: false } }]) {
    const { blob: picture } = await halcyon.image({ source, width: 400, height: 300, ...rule });
    assert.ok(picture.size > 1000 && picture.type.startsWith("image/"), source);
  }
}
const none = await failure(() => halcyon.image({ source: `${photograph}.none`, width: 9 }));
assert.ok(none instanceof JobFailed && none.code === "not_found", none);
const small = new Client(gateway, { maximumBytes: 2000 });
assert.ok((await failure(() => small.image({ source: photograph, width: 300 }))) instanceof TooLarge);

let after = await halcyon.cursor();
const { id } = await halcyon.submit({ source: hanging, width: 9 });
for await (const { event } of halcyon.events({ jobs: [id], after })) {
  if (event.type.endsWith(".started")) assert.equal(await halcyon.cancel(id), true);
  else if (!event.type.endsWith(".progress")) {
    assert.ok(event.type.endsWith(".cancelled"), event.type);
    break;
  }
}

after = await halcyon.cursor();
const abort = new AbortController();
const image = failure(() => halcyon.image({ source: hanging, width: 10, id: "aborted" }, { signal: abort.signal }));
await halcyon.events({ types: ["started"], jobs: ["aborted"], after }).next();
abort.abort();
assert.equal((await image).name, "AbortError");
assert.ok((await halcyon.events({ types: ["cancelled"], jobs: ["aborted"], after }).next()).value.event);
const ended = new AbortController();
const stream = failure(() => halcyon.events({ jobs: ["nobody"], signal: ended.signal }).next());
setTimeout(() => ended.abort(), 100);
assert.equal((await stream).name, "AbortError");
console.log("ok");
process.exit(0);
