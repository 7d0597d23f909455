// Images of results, from the event or from the gateway. They are fetched, because an <img> element cannot send a key.

import { element } from "./elements.js";
import { bytes } from "./format.js";
import { imagePath, request } from "./api.js";

/** The maximum size of an image that is fetched for a preview. */
const mostBytes = 8_000_000;

/** True for the key of a hand-off image, which can be read only once, by its requester. */
const isHandOff = (key) => key.includes(":handoff:");

/** Describes the size and format of a variant. */
export const sizes = (variant) =>
  `${variant.width} × ${variant.height} ${String(variant.format).toUpperCase()}, ${bytes(variant.bytes)}`;

function fromBase64(text, format) {
  const characters = atob(text);
  return new Blob([Uint8Array.from(characters, (character) => character.charCodeAt(0))], { type: `image/${format}` });
}

/**
 * An image of one variant. `element` contains it, `load` fetches it, and `close` releases its memory.
 * A hand-off image is fetched only if it belongs to a job of this page (`isOwn`).
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
      image.addEventListener("error", () => this.#without("your browser does not support this format"));
      this.element.replaceChildren(image);
    } catch (error) {
      if (!this.#control.signal.aborted) this.#without(error.status === 404 ? "already expired" : error.message);
    }
  }

  async #bytes() {
    const { key, data, format, bytes: size } = this.#variant;
    if (typeof data === "string") return fromBase64(data, format);
    if (typeof key !== "string") throw new Error("not stored");
    if (isHandOff(key) && !this.#isOwn) throw new Error("available only to its requester");
    if (size > mostBytes && !this.#isOwn) throw new Error("too large for a preview");
    return (await request(imagePath(key), { signal: this.#control.signal })).blob();
  }

  #without(reason) { this.element.replaceChildren(element("p", {}, `No preview: ${reason}`)); }

  close() {
    this.#control.abort();
    if (this.#url !== undefined) URL.revokeObjectURL(this.#url);
  }
}
