// The scopes of the key. They only decide what the page offers; the gateway checks every request.

import { access, isRefusal } from "./api.js";
import { byId } from "./elements.js";

// Before they are known, nothing is disabled.
let scopes;
const listeners = [];

export const allows = (scope) => scopes?.includes(scope) ?? true;

/** Returns the reason why something is not available. */
export const reason = (scope) => `This needs a key with the scope ${scope}.`;

/** Calls `listener` now and whenever the scopes have changed. */
export function onAccess(listener) {
  listeners.push(listener);
  listener();
}

function showDocumentation(url) {
  byId("documentation").hidden = url === undefined;
  // Other schemes, such as javascript:, are not followed.
  if (url !== undefined && /^https?:/.test(url)) byId("documentation").href = url;
}

/** Loads the scopes of the key. Without a valid key there are none. While the gateway is unreachable, they stay as they are. */
export async function loadAccess() {
  try {
    const found = await access();
    scopes = found.scopes;
    showDocumentation(found.documentation);
    byId("metrics").hidden = !found.metrics;
  } catch (error) {
    if (!isRefusal(error)) return;
    scopes = [];
  }
  for (const listener of listeners) listener();
}

/** Disables a button or a fieldset, with the reason, unless the key has the scope. */
export function guard(control, scope) {
  control.disabled = !allows(scope);
  if (control.disabled) control.title = reason(scope);
  else control.removeAttribute("title");
  return control;
}
