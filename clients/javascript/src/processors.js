/**
 * @typedef {import("./types.js").Processor} Processor
 * @typedef {import("./types.js").Radius} Radius
 * @typedef {import("./types.js").Corner} Corner
 * @typedef {import("./types.js").Source} Source
 * @typedef {import("./types.js").BlendMode} BlendMode
 */

/** Processors: the steps that an image goes through. Lengths are in points, colors are those of CSS. */
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
   * @param {{opacity?: number, mode?: BlendMode}} options
   * @returns {Processor}
   */
  overlayImage: (source, options = {}) => ({ overlay: { source, ...options } }),
  /**
   * Blends the image with a color.
   * @param {BlendMode} mode
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
   * Blurs all faces, by a share of the longer side of the area, which exceeds the face by `margin` on each side.
   * @param {{ amount?: number, margin?: number, confidence?: number }} [options]
   * @returns {Processor}
   */
  blurFaces: (options = {}) => ({ blurFaces: options }),
  /**
   * Turns all faces into squares, whose number along the longer side of the area is `cells`.
   * @param {{ cells?: number, margin?: number, confidence?: number }} [options]
   * @returns {Processor}
   */
  pixelateFaces: (options = {}) => ({ pixelateFaces: options }),
  /**
   * Places another image in a corner, along a side or in the middle: at a fraction of the image's width, or at a scale of its own size.
   * @param {Source} source
   * @param {import("./types.js").WatermarkOptions} options
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
  /**
   * Enlarges the canvas on all sides, or on some. A color belongs to the fill "color", which is the default.
   * @param {number | {all?: number, top?: number, right?: number, bottom?: number, left?: number}} sides
   * @param {{fill?: import("./types.js").Fill, color?: string}} options
   * @returns {Processor}
   */
  pad: (sides, options = {}) => ({ pad: { ...(typeof sides === "number" ? { all: sides } : sides), ...options } }),
  /**
   * Draws a text in a font family that the workers have. Without a size, it is the largest that fits into the box of width and height.
   * @param {string} text
   * @param {string} font
   * @param {import("./types.js").TextOptions} options
   * @returns {Processor}
   */
  text: (text, font, options = {}) => ({ text: { text, font, ...options } }),
  /**
   * Clips the image to a shape.
   * @param {import("./types.js").Shape} shape
   * @returns {Processor}
   */
  mask: (shape) => ({ mask: { shape } }),
  /**
   * Clips the image by the opacity of another image, or by its luminance if it is opaque.
   * @param {Source} source
   * @returns {Processor}
   */
  maskImage: (source) => ({ mask: { source } }),
  /**
   * Rotates all hues.
   * @param {number} degrees
   * @returns {Processor}
   */
  hue: (degrees) => ({ hue: { degrees } }),
  /**
   * Brightens the midtones (above 1), or darkens them (below 1).
   * @param {number} [gamma]
   * @returns {Processor}
   */
  gamma: (gamma = 2.2) => ({ gamma: { gamma } }),
  /**
   * Stretches the lightness to the full range. The options are the percentiles that become black and white.
   * @param {{lower?: number, upper?: number}} options
   * @returns {Processor}
   */
  normalize: (options = {}) => ({ normalize: options }),
  /**
   * Replaces the colors by a gradient between two of them.
   * @param {string} dark
   * @param {string} light
   * @returns {Processor}
   */
  duotone: (dark, light) => ({ duotone: { dark, light } }),
});

/**
 * @param {number | Radius} radius
 * @returns {Radius}
 */
const member = (radius) => (typeof radius === "number" ? { radius } : radius);
