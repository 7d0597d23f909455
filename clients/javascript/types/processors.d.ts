/**
 * @typedef {import("./types.js").Processor} Processor
 * @typedef {import("./types.js").Radius} Radius
 * @typedef {import("./types.js").Corner} Corner
 * @typedef {import("./types.js").Source} Source
 */
/** Processors: the steps that a sized image goes through. Lengths are in points, colors are those of CSS. */
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
     * @param {{opacity?: number}} options
     * @returns {Processor}
     */
    overlayImage: (source: Source, options?: {
        opacity?: number;
    }) => Processor;
    /**
     * Blends the image with a color.
     * @param {import("./types.js").BlendMode} mode
     * @param {string} background
     * @param {{opacity?: number}} options
     * @returns {Processor}
     */
    blend: (mode: import("./types.js").BlendMode, background: string, options?: {
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
     * Places another image in a corner, along a side or in the middle.
     * @param {Source} source
     * @param {{position?: import("./types.js").Position, margin?: number, widthFraction?: number, opacity?: number, tiled?: boolean}} options
     * @returns {Processor}
     */
    watermark: (source: Source, options?: {
        position?: import("./types.js").Position;
        margin?: number;
        widthFraction?: number;
        opacity?: number;
        tiled?: boolean;
    }) => Processor;
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
}>;
export type Processor = import("./types.js").Processor;
export type Radius = import("./types.js").Radius;
export type Corner = import("./types.js").Corner;
export type Source = import("./types.js").Source;
