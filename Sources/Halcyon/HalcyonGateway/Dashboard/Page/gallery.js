// The latest images, newest first.

import { element } from "./elements.js";
import { jobLink } from "./views.js";
import { duration, originName, shortened, tail } from "./format.js";
import { Picture, sizes } from "./pictures.js";

const most = 12;
/** The maximum number of concurrent fetches. */
const fetchesAtOnce = 2;

/** Returns the alternative text of an image. */
export function altText(event) {
  const alt = event.data?.job?.altText;
  return shortened(typeof alt === "string" && alt !== "" ? alt : String(event.subject ?? "an image"), 500);
}

export class Gallery {
  #list;
  #empty;
  /** Images that are not shown yet, by result, newest last. */
  #arrivals = new Map();
  /** Cards that are shown, by result. */
  #cards = new Map();
  #waiting = [];
  #fetches = 0;

  constructor(section) {
    this.#list = section.querySelector("ul");
    this.#empty = section.querySelector(".empty");
  }

  /** Adds an image. A result that is shown already moves to the front. */
  add(event) {
    const variant = event.data?.variants?.[0];
    if (variant === undefined) return;
    const name = variant.key ?? event.id;
    this.#arrivals.delete(name);
    this.#arrivals.set(name, event);
    if (this.#arrivals.size > most) this.#arrivals.delete(this.#arrivals.keys().next().value);
  }

  /** Adds older images, newest first, behind those that were added meanwhile. */
  prefill(events) {
    const newer = [...this.#arrivals.values()];
    this.#arrivals.clear();
    for (const event of [...events.reverse(), ...newer]) this.add(event);
  }

  /** Shows the images that were added since the last call. */
  draw() {
    if (this.#arrivals.size === 0) return;
    this.#empty.hidden = true;
    for (const [name, event] of this.#arrivals) {
      const known = this.#cards.get(name);
      this.#cards.delete(name);
      const card = known ?? this.#card(event);
      card.caption.replaceChildren(...captions(event));
      this.#cards.set(name, card);
      this.#list.prepend(card.element);
    }
    this.#arrivals.clear();
    for (const [name, card] of this.#cards) {
      if (this.#cards.size <= most) break;
      this.#cards.delete(name);
      card.element.remove();
      card.picture.close();
    }
    this.#waiting = this.#waiting.filter((picture) => picture.element.isConnected);
    this.#fetch();
  }

  #card(event) {
    const picture = new Picture(event.data.variants[0], altText(event));
    this.#waiting.push(picture);
    const caption = element("figcaption");
    return { picture, caption, element: element("li", {}, element("figure", {}, picture.element, caption)) };
  }

  #fetch() {
    while (this.#fetches < fetchesAtOnce && this.#waiting.length > 0) {
      this.#fetches += 1;
      const picture = this.#waiting.pop();
      picture.load().finally(() => { this.#fetches -= 1; this.#fetch(); });
    }
  }
}

function captions(event) {
  const { job, variants, origin, timings, fallback } = event.data;
  const others = variants.length > 1 ? ` and ${variants.length - 1} more` : "";
  return [
    jobLink(job?.id, tail(String(event.subject ?? "no source"), 18), {
      className: "source", title: shortened(String(event.subject ?? ""), 500),
    }),
    element("span", {}, `${sizes(variants[0])}${others}`),
    element("span", {}, `${originName(origin)}, ${duration(timings?.total)}`),
    ...(fallback === undefined ? [] : [element("span", {}, `fallback: ${shortened(String(fallback.code), 40)}`)]),
  ];
}
