// Pictures of results: from the event, or from the gateway. With a key an <img> could not ask for them.

import { element } from "./elements.js";
import { bytes } from "./format.js";
import { imagePath, request } from "./api.js";

/** Larger ones are not looked at unasked. */
const mostBytes = 8_000_000;

/** What a hand-off's key names is given once, and is somebody else's. */
const isHandOff = (key) => key.includes(":handoff:");

/** What is shown of a variant, for people. */
export const sizes = (variant) =>
  `${variant.width} × ${variant.height} ${String(variant.format).toUpperCase()}, ${bytes(variant.bytes)}`;

function fromBase64(text, format) {
  const characters = atob(text);
  return new Blob([Uint8Array.from(characters, (character) => character.charCodeAt(0))], { type: `image/${format}` });
}

/**
 * A picture of one variant. `element` stands where it will be; `load` has it come, and `close` gives its memory back.
 * One's own hand-off (`isOwn`) is taken.
 */
export class Picture {
  element = element("div", { className: "picture" });
  #variant;
  #alt;
  #isOwn;
  #control = new AbortController();
  #url;

  constructor(variant, alt, { isOwn = false } = {}) {
    [this.#variant, this.#alt, this.#isOwn] = [variant, alt, isOwn];
  }

  async load() {
    if (this.#control.signal.aborted) return;
    try {
      const blob = await this.#bytes();
      if (this.#control.signal.aborted) return;
      this.#url = URL.createObjectURL(blob);
      const image = element("img", { alt: this.#alt, src: this.#url });
      image.addEventListener("error", () => this.#without("your browser does not show this format"));
      this.element.replaceChildren(image);
    } catch (error) {
      if (!this.#control.signal.aborted) this.#without(error.status === 404 ? "expired already" : error.message);
    }
  }

  async #bytes() {
    const { key, data, format, bytes: size } = this.#variant;
    if (typeof data === "string") return fromBase64(data, format);
    if (typeof key !== "string") throw new Error("not stored");
    if (isHandOff(key) && !this.#isOwn) throw new Error("handed to its asker alone");
    if (size > mostBytes && !this.#isOwn) throw new Error("too large to show unasked");
    return (await request(imagePath(key), { signal: this.#control.signal })).blob();
  }

  #without(reason) { this.element.replaceChildren(element("p", {}, `No picture: ${reason}`)); }

  close() {
    this.#control.abort();
    if (this.#url !== undefined) URL.revokeObjectURL(this.#url);
  }
}
