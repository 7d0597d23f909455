/**
 * @typedef {import("./types.js").Processor} Processor
 * @typedef {import("./types.js").Radius} Radius
 * @typedef {import("./types.js").Corner} Corner
 * @typedef {import("./types.js").Source} Source
 * @typedef {import("./types.js").BlendMode} BlendMode
 */
/** Processors: the steps that an image goes through. Lengths are in points, colors are those of CSS. */
export const processors: Readonly<{
    /**
     * Rounds the corners, by a radius in points or in a fraction of the image's width or height.
     * @param {number | Radius} radius
     * @param {{corners?: Corner[], background?: string}} options
     * @returns {Processor}
     */
    roundCorner: (radius: number | Radius, options?: {
        corners?: Corner[];
        background?: string;
    }) => Processor;
    /**
     * Resizes the image; stretches it unless there is a mode.
     * @param {number} width
     * @param {number} height
     * @param {{mode?: "none" | "aspectFit" | "aspectFill"}} options
     * @returns {Processor}
     */
    resize: (width: number, height: number, options?: {
        mode?: "none" | "aspectFit" | "aspectFill";
    }) => Processor;
    /**
     * Crops the image to this size around an anchor, given in fractions.
     * @param {number} width
     * @param {number} height
     * @param {import("./types.js").Point} [anchor]
     * @returns {Processor}
     */
    crop: (width: number, height: number, anchor?: import("./types.js").Point | undefined) => Processor;
    /**
     * Blurs the image (Gaussian).
     * @param {number} radius
     * @returns {Processor}
     */
    blur: (radius: number) => Processor;
    /**
     * Replaces all colors by one.
     * @param {string} color
     * @returns {Processor}
     */
    tint: (color: string) => Processor;
    /**
     * Lays a color over the image, of which a fraction remains visible.
     * @param {string} color
     * @param {{fraction?: number}} options
     * @returns {Processor}
     */
    overlay: (color: string, options?: {
        fraction?: number;
    }) => Processor;
    /**
     * Lays another image over the image.
     * @param {Source} source
     * @param {{opacity?: number, mode?: BlendMode}} options
     * @returns {Processor}
     */
    overlayImage: (source: Source, options?: {
        opacity?: number;
        mode?: BlendMode;
    }) => Processor;
    /**
     * Blends the image with a color.
     * @param {BlendMode} mode
     * @param {string} background
     * @param {{opacity?: number}} options
     * @returns {Processor}
     */
    blend: (mode: BlendMode, background: string, options?: {
        opacity?: number;
    }) => Processor;
    /**
     * Changes brightness, contrast, saturation and exposure.
     * @param {{brightness?: number, contrast?: number, saturation?: number, exposure?: number}} controls
     * @returns {Processor}
     */
    colorControls: (controls: {
        brightness?: number;
        contrast?: number;
        saturation?: number;
        exposure?: number;
    }) => Processor;
    /**
     * Removes the colors.
     * @returns {Processor}
     */
    blackWhite: () => Processor;
    /**
     * Draws a border, with round corners if a radius is given.
     * @param {number} width
     * @param {{color?: string, radius?: number | Radius, corners?: Corner[]}} options
     * @returns {Processor}
     */
    border: (width: number, { radius, ...options }?: {
        color?: string;
        radius?: number | Radius;
        corners?: Corner[];
    }) => Processor;
    /**
     * Shrinks the image in proportion to fit this size.
     * @param {number} width
     * @param {number} height
     * @returns {Processor}
     */
    downsample: (width: number, height: number) => Processor;
    /**
     * Sharpens the image. The radius is in pixels.
     * @param {{radius?: number, amount?: number}} options
     * @returns {Processor}
     */
    sharpen: (options?: {
        radius?: number;
        amount?: number;
    }) => Processor;
    /**
     * Replaces the image by squares of this size.
     * @param {number} size
     * @returns {Processor}
     */
    pixelate: (size: number) => Processor;
    /**
     * Blurs all faces, by a share of the longer side of the area, which exceeds the face by `margin` on each side.
     * @param {{ amount?: number, margin?: number, confidence?: number }} [options]
     * @returns {Processor}
     */
    blurFaces: (options?: {
        amount?: number | undefined;
        margin?: number | undefined;
        confidence?: number | undefined;
    } | undefined) => Processor;
    /**
     * Turns all faces into squares, whose number along the longer side of the area is `cells`.
     * @param {{ cells?: number, margin?: number, confidence?: number }} [options]
     * @returns {Processor}
     */
    pixelateFaces: (options?: {
        cells?: number | undefined;
        margin?: number | undefined;
        confidence?: number | undefined;
    } | undefined) => Processor;
    /**
     * Places another image in a corner, along a side or in the middle: at a fraction of the image's width, or at a scale of its own size.
     * @param {Source} source
     * @param {import("./types.js").WatermarkOptions} options
     * @returns {Processor}
     */
    watermark: (source: Source, options?: import("./types.js").WatermarkOptions) => Processor;
    /**
     * Rotates the image clockwise.
     * @param {number} degrees
     * @param {{background?: string}} options
     * @returns {Processor}
     */
    rotate: (degrees: number, options?: {
        background?: string;
    }) => Processor;
    /**
     * Mirrors the image.
     * @param {"horizontal" | "vertical" | "both"} [direction]
     * @returns {Processor}
     */
    flip: (direction?: "both" | "horizontal" | "vertical" | undefined) => Processor;
    /**
     * Enlarges the canvas on all sides, or on some. A color belongs to the fill "color", which is the default.
     * @param {number | {all?: number, top?: number, right?: number, bottom?: number, left?: number}} sides
     * @param {{fill?: import("./types.js").Fill, color?: string}} options
     * @returns {Processor}
     */
    pad: (sides: number | {
        all?: number;
        top?: number;
        right?: number;
        bottom?: number;
        left?: number;
    }, options?: {
        fill?: import("./types.js").Fill;
        color?: string;
    }) => Processor;
    /**
     * Draws a text in a font family that the workers have. Without a size, it is the largest that fits into the box of width and height.
     * @param {string} text
     * @param {string} font
     * @param {import("./types.js").TextOptions} options
     * @returns {Processor}
     */
    text: (text: string, font: string, options?: import("./types.js").TextOptions) => Processor;
    /**
     * Clips the image to a shape.
     * @param {import("./types.js").Shape} shape
     * @returns {Processor}
     */
    mask: (shape: import("./types.js").Shape) => Processor;
    /**
     * Clips the image by the opacity of another image, or by its luminance if it is opaque.
     * @param {Source} source
     * @returns {Processor}
     */
    maskImage: (source: Source) => Processor;
    /**
     * Rotates all hues.
     * @param {number} degrees
     * @returns {Processor}
     */
    hue: (degrees: number) => Processor;
    /**
     * Brightens the midtones (above 1), or darkens them (below 1).
     * @param {number} [gamma]
     * @returns {Processor}
     */
    gamma: (gamma?: number | undefined) => Processor;
    /**
     * Stretches the lightness to the full range. The options are the percentiles that become black and white.
     * @param {{lower?: number, upper?: number}} options
     * @returns {Processor}
     */
    normalize: (options?: {
        lower?: number;
        upper?: number;
    }) => Processor;
    /**
     * Replaces the colors by a gradient between two of them.
     * @param {string} dark
     * @param {string} light
     * @returns {Processor}
     */
    duotone: (dark: string, light: string) => Processor;
}>;
export type Processor = import("./types.js").Processor;
export type Radius = import("./types.js").Radius;
export type Corner = import("./types.js").Corner;
export type Source = import("./types.js").Source;
export type BlendMode = import("./types.js").BlendMode;
