// Creates elements. Sources, messages and alternative texts are untrusted, so text is never parsed as HTML.

const svgNamespace = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

/** Creates an element with properties and children. Children are elements or text. */
export function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

/** Creates an SVG element with attributes and children. */
export function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS(svgNamespace, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** Sets a text only if it changes, to avoid needless layout and screen-reader announcements. */
export function say(target, text) {
  if (target.textContent !== text) target.textContent = text;
}
