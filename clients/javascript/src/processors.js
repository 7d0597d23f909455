/**
 * @typedef {import("./types.js").Processor} Processor
 * @typedef {import("./types.js").Radius} Radius
 * @typedef {import("./types.js").Corner} Corner
 * @typedef {import("./types.js").Source} Source
 */

/** Processors: the steps that a sized image goes through. Lengths are in points, colors are those of CSS. */
export const processors = Object.freeze({
  /**
   * Rounds the corners, by a radius in points or in a fraction of the image's width or height.
   * @param {number | Radius} radius
   * @param {{corners?: Corner[], background?: string}} options
   * @returns {Processor}
   */
  roundCorner: (radius, options = {}) => ({ roundCorner: { ...member(radius), ...options } }),
  /**
   * Resizes the image; stretches it unless there is a mode.
   * @param {number} width
   * @param {number} height
   * @param {{mode?: "none" | "aspectFit" | "aspectFill"}} options
   * @returns {Processor}
   */
  resize: (width, height, options = {}) => ({ resize: { width, height, ...options } }),
  /**
   * Crops the image to this size around an anchor, given in fractions.
   * @param {number} width
   * @param {number} height
   * @param {import("./types.js").Point} [anchor]
   * @returns {Processor}
   */
  crop: (width, height, anchor = { x: 0.5, y: 0.5 }) => ({ crop: { width, height, anchor } }),
  /**
   * Blurs the image (Gaussian).
   * @param {number} radius
   * @returns {Processor}
   */
  blur: (radius) => ({ blur: { radius } }),
  /**
   * Replaces all colors by one.
   * @param {string} color
   * @returns {Processor}
   */
  tint: (color) => ({ tint: { color } }),
  /**
   * Lays a color over the image, of which a fraction remains visible.
   * @param {string} color
   * @param {{fraction?: number}} options
   * @returns {Processor}
   */
  overlay: (color, options = {}) => ({ overlay: { color, ...options } }),
  /**
   * Lays another image over the image.
   * @param {Source} source
   * @param {{opacity?: number}} options
   * @returns {Processor}
   */
  overlayImage: (source, options = {}) => ({ overlay: { source, ...options } }),
  /**
   * Blends the image with a color.
   * @param {import("./types.js").BlendMode} mode
   * @param {string} background
   * @param {{opacity?: number}} options
   * @returns {Processor}
   */
  blend: (mode, background, options = {}) => ({ blend: { mode, background, ...options } }),
  /**
   * Changes brightness, contrast, saturation and exposure.
   * @param {{brightness?: number, contrast?: number, saturation?: number, exposure?: number}} controls
   * @returns {Processor}
   */
  colorControls: (controls) => ({ colorControls: controls }),
  /**
   * Removes the colors.
   * @returns {Processor}
   */
  blackWhite: () => ({ blackWhite: {} }),
  /**
   * Draws a border, with round corners if a radius is given.
   * @param {number} width
   * @param {{color?: string, radius?: number | Radius, corners?: Corner[]}} options
   * @returns {Processor}
   */
  border: (width, { radius, ...options } = {}) => ({ border: { width, ...options, ...(radius === undefined ? {} : member(radius)) } }),
  /**
   * Shrinks the image in proportion to fit this size.
   * @param {number} width
   * @param {number} height
   * @returns {Processor}
   */
  downsample: (width, height) => ({ downsample: { width, height } }),
  /**
   * Sharpens the image. The radius is in pixels.
   * @param {{radius?: number, amount?: number}} options
   * @returns {Processor}
   */
  sharpen: (options = {}) => ({ sharpen: options }),
  /**
   * Replaces the image by squares of this size.
   * @param {number} size
   * @returns {Processor}
   */
  pixelate: (size) => ({ pixelate: { size } }),
  /**
   * Places another image in a corner, along a side or in the middle.
   * @param {Source} source
   * @param {{position?: import("./types.js").Position, margin?: number, widthFraction?: number, opacity?: number, tiled?: boolean}} options
   * @returns {Processor}
   */
  watermark: (source, options = {}) => ({ watermark: { source, ...options } }),
  /**
   * Rotates the image clockwise.
   * @param {number} degrees
   * @param {{background?: string}} options
   * @returns {Processor}
   */
  rotate: (degrees, options = {}) => ({ rotate: { degrees, ...options } }),
  /**
   * Mirrors the image.
   * @param {"horizontal" | "vertical" | "both"} [direction]
   * @returns {Processor}
   */
  flip: (direction = "horizontal") => ({ flip: { direction } }),
});

/**
 * @param {number | Radius} radius
 * @returns {Radius}
 */
const member = (radius) => (typeof radius === "number" ? { radius } : radius);
