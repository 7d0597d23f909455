package org.example.halcyon;

import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.example.halcyon.OutputFields.ContentMode;

/**
 * A step that an image goes through. Lengths are in points, and colors are CSS colors.
 *
 * @param name the name
 * @param parameters the parameters, which are JSON values
 */
public record Processor(String name, Map<String, ?> parameters) implements JsonValue {
    /** Creates a processor, such as one that a cluster has registered itself. Parameters that are null are left out. */
    public Processor(String name, Map<String, ?> parameters) {
        this.name = name;
        Map<String, Object> given = new LinkedHashMap<>(parameters);
        given.values().removeIf(value -> value == null);
        this.parameters = given;
    }

    @Override
    public Map<String, Object> json() {
        return Json.object(name, parameters);
    }

    private static Processor of(String name, Object... parameters) {
        return new Processor(name, Json.object(parameters));
    }

    private Processor with(String name, Object value) {
        Map<String, Object> changed = new LinkedHashMap<>(parameters);
        changed.put(name, value);
        return new Processor(this.name, changed);
    }

    /** Removes the colors. */
    public static final Processor BLACK_WHITE = of("blackWhite");

    /**
     * The radius of round corners.
     *
     * @param name radius, widthFraction or heightFraction
     * @param value the number
     */
    public record Radius(String name, double value) {
        /** A radius in points. */
        public static Radius points(double radius) {
            return new Radius("radius", radius);
        }

        /** A radius as a fraction of the width of the image. */
        public static Radius widthFraction(double fraction) {
            return new Radius("widthFraction", fraction);
        }

        /** A radius as a fraction of the height of the image. */
        public static Radius heightFraction(double fraction) {
            return new Radius("heightFraction", fraction);
        }
    }

    /** Rounds the corners, all if none is named. */
    public static Processor roundCorner(Radius radius, ContentMode... corners) {
        return of("roundCorner", radius.name, radius.value, "corners", corners.length == 0 ? null : List.of(corners));
    }

    /** The same with a background: of roundCorner, rotate. */
    public Processor background(String color) {
        return with("background", color);
    }

    /** The same with a blend mode: of an overlay with a source, watermark. */
    public Processor mode(String mode) {
        return with("mode", mode);
    }

    /** The same with a scale of its own size: of a watermark without a fraction of the width. */
    public Processor scale(double scale) {
        return with("scale", scale);
    }

    /** The same with a distance from the position, to the right and downward: of watermark, text. */
    public Processor offset(double x, double y) {
        return with("offset", Json.object("x", x, "y", y));
    }

    /** The same at a position: of watermark, text. */
    public Processor position(ContentMode position) {
        return with("position", position);
    }

    /** The same with a distance from the sides: of watermark, text. */
    public Processor margin(double margin) {
        return with("margin", margin);
    }

    /** The same with an opacity, 0 to 1: of watermark, text. */
    public Processor opacity(double opacity) {
        return with("opacity", opacity);
    }

    /** The same with a color: of pad with the fill color, text. */
    public Processor color(String color) {
        return with("color", color);
    }

    /** Stretches the image to another size. */
    public static Processor resize(double width, double height) {
        return of("resize", "width", width, "height", height);
    }

    /** Resizes the image with a mode: none, aspectFit or aspectFill. */
    public static Processor resize(double width, double height, String mode) {
        return resize(width, height).with("mode", mode);
    }

    /** Crops the image to this size around its middle. */
    public static Processor crop(double width, double height) {
        return of("crop", "width", width, "height", height);
    }

    /** Crops the image to this size around an anchor, given in fractions of its sides. */
    public static Processor crop(double width, double height, double anchorX, double anchorY) {
        return crop(width, height).with("anchor", Json.object("x", anchorX, "y", anchorY));
    }

    /** Blurs the image (Gaussian). */
    public static Processor blur(double radius) {
        return of("blur", "radius", radius);
    }

    /** Replaces all colors by one. */
    public static Processor tint(String color) {
        return of("tint", "color", color);
    }

    /** Lays a color over the image, of which a fraction remains visible. */
    public static Processor overlay(String color, double fraction) {
        return of("overlay", "color", color, "fraction", fraction);
    }

    /** Lays another image over the image. */
    public static Processor overlay(Source source, double opacity) {
        return of("overlay", "source", source, "opacity", opacity);
    }

    /** Blends the image with a color. The modes have their CSS names in camel case, such as multiply. */
    public static Processor blend(String mode, String background, double opacity) {
        return of("blend", "mode", mode, "background", background, "opacity", opacity);
    }

    /** Changes the brightness (neutral: 0), contrast (1), saturation (1) and exposure (0). */
    public static Processor colorControls(double brightness, double contrast, double saturation, double exposure) {
        return of("colorControls", "brightness", brightness, "contrast", contrast, "saturation", saturation, "exposure", exposure);
    }

    /** Draws a border with square corners. */
    public static Processor border(double width, String color) {
        return of("border", "width", width, "color", color);
    }

    /** Draws a border with round corners, all if none is named. */
    public static Processor border(double width, String color, Radius radius, ContentMode... corners) {
        return border(width, color).with(radius.name, radius.value).with("corners", corners.length == 0 ? null : Arrays.asList(corners));
    }

    /** Shrinks the image in proportion to fit this size. */
    public static Processor downsample(double width, double height) {
        return of("downsample", "width", width, "height", height);
    }

    /** Sharpens the image. The defaults of Halcyon are a radius of 0.5 pixels and an amount of 1. */
    public static Processor sharpen(double radius, double amount) {
        return of("sharpen", "radius", radius, "amount", amount);
    }

    /** Turns the image into squares of this size. */
    public static Processor pixelate(double size) {
        return of("pixelate", "size", size);
    }

    /** Blurs all faces. */
    public static Processor blurFaces() {
        return of("blurFaces");
    }

    /**
     * Blurs all faces.
     *
     * @param amount the blur as a share of the longer side of the area, 0.05 to 1
     * @param margin the share of the longer side of a face by which the area exceeds it on each side
     * @param confidence the minimum confidence of the detector, 0 to 1
     */
    public static Processor blurFaces(double amount, double margin, double confidence) {
        return of("blurFaces", "amount", amount, "margin", margin, "confidence", confidence);
    }

    /** Turns all faces into squares. */
    public static Processor pixelateFaces() {
        return of("pixelateFaces");
    }

    /**
     * Turns all faces into squares.
     *
     * @param cells the number of squares along the longer side of the area, 1 to 32
     * @param margin the share of the longer side of a face by which the area exceeds it on each side
     * @param confidence the minimum confidence of the detector, 0 to 1
     */
    public static Processor pixelateFaces(int cells, double margin, double confidence) {
        return of("pixelateFaces", "cells", cells, "margin", margin, "confidence", confidence);
    }

    /** Places another image over the image, at the bottom right. */
    public static Processor watermark(Source source) {
        return of("watermark", "source", source);
    }

    /**
     * Places another image over the image.
     *
     * @param position in a corner, along a side or in the middle
     * @param margin the distance from the sides
     * @param widthFraction the width as a fraction of that of the image; null for its own size
     * @param tiled true to repeat it over the whole image
     */
    public static Processor watermark(Source source, ContentMode position, double margin, Double widthFraction, double opacity, boolean tiled) {
        return of("watermark", "source", source, "position", position, "margin", margin, "widthFraction", widthFraction, "opacity", opacity, "tiled", tiled);
    }

    /** Enlarges the canvas on all sides. */
    public static Processor pad(double all) {
        return of("pad", "all", all);
    }

    /** Enlarges the canvas on each side. */
    public static Processor pad(double top, double right, double bottom, double left) {
        return of("pad", "top", top, "right", right, "bottom", bottom, "left", left);
    }

    /** The same with another content: of pad. It is color, edge, mirror or blur. */
    public Processor fill(String fill) {
        return with("fill", fill);
    }

    /** Draws a text in a font family that the workers have, in the largest size that fits. */
    public static Processor text(String text, String font) {
        return of("text", "text", text, "font", font);
    }

    /** The same in the bold face: of text. */
    public Processor bold() {
        return with("bold", true);
    }

    /** The same in the italic face: of text. */
    public Processor italic() {
        return with("italic", true);
    }

    /** The same in a font of this size: of text. */
    public Processor size(double size) {
        return with("size", size);
    }

    /** The same in a box of this size: of text. */
    public Processor box(double width, double height) {
        return with("width", width).with("height", height);
    }

    /** The same with lines aligned left, center or right: of text. */
    public Processor align(String align) {
        return with("align", align);
    }

    /** The same with an outline around the glyphs: of text. */
    public Processor outline(double width, String color) {
        return with("outlineWidth", width).with("outlineColor", color);
    }

    /** Clips the image to a shape: circle, ellipse, triangle, diamond, pentagon, hexagon, octagon, star or heart. */
    public static Processor mask(String shape) {
        return of("mask", "shape", shape);
    }

    /** Clips the image by the opacity of another image, or by its luminance if it is opaque. */
    public static Processor mask(Source source) {
        return of("mask", "source", source);
    }

    /** Rotates all hues. */
    public static Processor hue(double degrees) {
        return of("hue", "degrees", degrees);
    }

    /** Brightens the midtones (above 1), or darkens them (below 1). */
    public static Processor gamma(double gamma) {
        return of("gamma", "gamma", gamma);
    }

    /** Stretches the lightness to the full range. */
    public static Processor normalize() {
        return of("normalize");
    }

    /** Stretches the lightness to the full range, between two percentiles. */
    public static Processor normalize(double lower, double upper) {
        return of("normalize", "lower", lower, "upper", upper);
    }

    /** Replaces the colors by a gradient between two of them. */
    public static Processor duotone(String dark, String light) {
        return of("duotone", "dark", dark, "light", light);
    }

    /** Rotates the image clockwise. */
    public static Processor rotate(double degrees) {
        return of("rotate", "degrees", degrees);
    }

    /** Mirrors the image: horizontal swaps left and right, vertical top and bottom, and both does both. */
    public static Processor flip(String direction) {
        return of("flip", "direction", direction);
    }
}
