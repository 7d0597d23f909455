// Commands that submit a job again.

/** Quotes a text for a POSIX shell. */
export const quoted = (text) => (/^[A-Za-z0-9_@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);

const options = { width: "--width", height: "--height", contentMode: "--content-mode", format: "--format", altText: "--alt-text", tenant: "--tenant" };

/** Returns the options of `halcyon submit` for a job; undefined if it has fields that are no simple options. */
function simple({ source, ...fields }) {
  if (typeof source !== "string" || source.startsWith("-")) return undefined;
  const words = ["halcyon", "submit", source];
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined) continue;
    if (name === "metadata") words.push("--metadata", JSON.stringify(value));
    else if (Object.hasOwn(options, name) && ["string", "number"].includes(typeof value)) words.push(`${options[name]}=${value}`);
    else return undefined;
  }
  return [...words, "--wait"].map(quoted).join(" ");
}

/**
 * Returns the commands `submit` and `curl` for a job. The id is left out, because the same id twice would be answered by the first job.
 * @param isWhole - true if the job has all its fields, false if it was reconstructed.
 */
export function commands({ id, ...job }, { isWhole, gateway }) {
  const known = Object.fromEntries(Object.entries(job).filter(([, value]) => value !== undefined));
  const body = JSON.stringify(known);
  const submit = simple(known) ?? `printf '%s' ${quoted(body)} | halcyon submit --job - --wait`;
  const curl = [
    `curl --fail-with-body ${quoted(`${gateway}/v1/jobs`)}`, `-H 'Content-Type: application/json'`, `-H "X-API-Key: $API_KEY"`,
    `--data-raw ${quoted(body)}`,
  ].join(" \\\n  ");
  return { submit, curl, isWhole };
}
