// The forms that purge results and cancel jobs. They need the scope admin.

import { cancelJob, cancelJobs, purge } from "./api.js";
import { guard, onAccess, reason, allows } from "./access.js";
import { byId, confirmed, say } from "./elements.js";
import { count, shortened } from "./format.js";

const value = (id) => byId(id).value.trim();

/** Reads a source: a text, or a JSON object. */
function source(text) {
  if (!text.startsWith("{")) return text;
  try { return JSON.parse(text); } catch (error) { throw new Error(`source: ${error.message}`); }
}

/** Connects a form. `read` returns the question and the request; `run` sends it and returns the text of its result. */
function connect(name, { read, run, refusal }) {
  byId(`${name}-form`).addEventListener("submit", async (event) => {
    event.preventDefault();
    const status = byId(`${name}-status`);
    status.dataset.state = "";
    try {
      const { title, text, action, body } = read();
      if (!await confirmed(title, text, action)) return;
      say(status, "Sending…");
      say(status, await run(body));
    } catch (error) {
      status.dataset.state = "failed";
      say(status, `${refusal}: ${error.message}`);
    }
  });
}

export class Actions {
  constructor() {
    connect("purge", {
      refusal: "Not purged",
      read() {
        const [kind, text, tenant] = [byId("purge-kind").value, value("purge-value"), value("purge-tenant")];
        if (text === "") throw new Error(`enter a ${kind}`);
        const body = { [kind]: kind === "source" ? source(text) : text, ...tenant === "" ? {} : { tenant } };
        return {
          title: "Purge results?", action: "Purge", body,
          text: `The results of the ${kind} ${shortened(text, 300)}${tenant === "" ? "" : ` of the tenant ${shortened(tenant, 80)}`} are deleted everywhere. Later jobs render them again.`,
        };
      },
      async run(body) {
        const { count: number } = await purge(body);
        return `Purged: ${count(number)} result${number === 1 ? "" : "s"}.`;
      },
    });
    connect("cancel", {
      refusal: "Not cancelled",
      read() {
        const [kind, text, tenant] = [byId("cancel-kind").value, value("cancel-value"), value("cancel-tenant")];
        if (text === "") throw new Error(`enter a ${kind}`);
        const withTenant = tenant === "" || kind === "job" || kind === "tenant" ? {} : { tenant };
        return {
          title: "Cancel jobs?", action: "Cancel jobs",
          text: `Jobs that have not ended, with the ${kind} ${shortened(text, 300)}${withTenant.tenant === undefined ? "" : ` and the tenant ${shortened(tenant, 80)}`}, end without an image.`,
          body: { [kind]: kind === "source" ? source(text) : text, ...withTenant },
        };
      },
      async run(body) {
        await (body.job === undefined ? cancelJobs(body) : cancelJob(body.job));
        return "The cancellation was sent to all workers. The events of the jobs tell which were in time.";
      },
    });
    onAccess(() => {
      for (const name of ["purge", "cancel"]) {
        guard(byId(`${name}-form`).querySelector("fieldset"), "admin");
        say(byId(`${name}-reason`), allows("admin") ? "" : reason("admin"));
      }
    });
  }

  open({ query }) {
    if (query.purge === undefined) return;
    byId("purge-kind").value = "source";
    byId("purge-value").value = query.purge;
  }
}
