// Makes elements. Text goes in as text: sources, messages and alternative texts come from strangers, so nothing here reads HTML.

const svgNamespace = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

/** An element with these properties, and children that are elements or texts. */
export function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

/** An element of SVG with these attributes. */
export function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS(svgNamespace, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** Sets a text only where it changes: screen readers and the layout are left alone otherwise. */
export function say(target, text) {
  if (target.textContent !== text) target.textContent = text;
}
