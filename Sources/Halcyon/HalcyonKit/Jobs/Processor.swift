extension ImageJob {
    /// A step that a sized image goes through. Lengths are in points, and colors are CSS colors.
    public struct Processor: RawRepresentable, Sendable, Hashable, Codable {
        /// The value in the job's JSON.
        public let rawValue: JSONValue
        /// Creates a processor from its JSON: an object with the name as its only member.
        public init(rawValue: JSONValue) { self.rawValue = rawValue }

        /// Creates a processor by its name, such as one that a cluster has registered itself.
        public init(_ name: String, _ parameters: [String: JSONValue] = [:]) {
            rawValue = .object([name: .object(parameters)])
        }

        private init(_ name: String, optional parameters: [String: JSONValue?]) {
            rawValue = .object([name: JSONValue(members: parameters)])
        }

        /// The radius of round corners.
        public enum Radius: Sendable, Hashable {
            /// A length in points.
            case points(Double)
            /// A fraction of the image's width or height, 0 to 1.
            case widthFraction(Double), heightFraction(Double)

            fileprivate var member: [String: JSONValue] {
                switch self {
                case .points(let value): ["radius": .number(value)]
                case .widthFraction(let value): ["widthFraction": .number(value)]
                case .heightFraction(let value): ["heightFraction": .number(value)]
                }
            }
        }

        /// A distance in points.
        public struct Offset: Sendable, Hashable {
            /// The distance to the right, and downward.
            public var x, y: Double

            /// Creates an offset.
            public init(x: Double = 0, y: Double = 0) { (self.x, self.y) = (x, y) }

            fileprivate var value: JSONValue { ["x": .number(x), "y": .number(y)] }
        }

        /// A text and its font. Properties that are nil have the schema's defaults.
        public struct Text: Sendable, Hashable {
            /// The text.
            public var text: String
            /// The name of a font family that the workers have.
            public var font: String
            /// True for the bold, and for the italic face.
            public var bold, italic: Bool?
            /// The size of the font; nil for the largest that fits.
            public var size: Double?
            /// The box that contains the text; nil for the image without its margins.
            public var width, height: Double?
            /// The alignment of lines: left, center or right.
            public var align: String?
            /// The CSS color of the text.
            public var color: String?
            /// The width of the outline around the glyphs.
            public var outlineWidth: Double?
            /// The CSS color of the outline.
            public var outlineColor: String?
            /// The opacity of the text, 0 to 1.
            public var opacity: Double?
            /// The position of the text.
            public var position: ImageJob.ContentMode?
            /// The distance from the edges.
            public var margin: Double?
            /// The distance from the position.
            public var offset: Offset?

            /// Creates a text. Everything else is set as a property.
            public init(_ text: String, font: String, size: Double? = nil, color: String? = nil) {
                (self.text, self.font, self.size, self.color) = (text, font, size, color)
            }

            fileprivate var parameters: [String: JSONValue?] {
                [
                    "text": .string(text), "font": .string(font), "bold": bold.map(JSONValue.bool),
                    "italic": italic.map(JSONValue.bool), "size": size.map(JSONValue.number),
                    "width": width.map(JSONValue.number), "height": height.map(JSONValue.number),
                    "align": align.map(JSONValue.string), "color": color.map(JSONValue.string),
                    "outlineWidth": outlineWidth.map(JSONValue.number),
                    "outlineColor": outlineColor.map(JSONValue.string), "opacity": opacity.map(JSONValue.number),
                    "position": (position?.rawValue).map(JSONValue.string), "margin": margin.map(JSONValue.number),
                    "offset": offset?.value,
                ]
            }
        }

        /// The shapes of masks.
        public enum Shape: String, Sendable, CaseIterable {
            /// The largest circle in the middle; all others touch the four sides.
            case circle, ellipse, triangle, diamond, pentagon, hexagon, octagon, star, heart
        }

        /// The content of padding.
        public enum Fill: String, Sendable, CaseIterable {
            /// A color, the pixels of the edge, the mirrored image, or the enlarged and blurred image.
            case color, edge, mirror, blur
        }

        /// The direction in which an image is mirrored.
        public enum Flip: String, Sendable, CaseIterable {
            /// `horizontal` swaps left and right, `vertical` top and bottom.
            case horizontal, vertical, both
        }
    }
}

extension ImageJob.Processor {
    /// Rounds the corners.
    public static func roundCorner(_ radius: Radius, background: String? = nil) -> Self {
        Self("roundCorner", radius.member.merging(background.map { ["background": .string($0)] } ?? [:]) { $1 })
    }
    /// Stretches the image to another size.
    public static func resize(width: Double, height: Double) -> Self {
        Self("resize", ["width": .number(width), "height": .number(height)])
    }
    /// Crops the image to this size around an anchor, given in fractions.
    public static func crop(width: Double, height: Double, x: Double = 0.5, y: Double = 0.5) -> Self {
        let anchor: JSONValue = ["x": .number(x), "y": .number(y)]
        return Self("crop", ["width": .number(width), "height": .number(height), "anchor": anchor])
    }
    /// Blurs the image (Gaussian).
    public static func blur(radius: Double) -> Self { Self("blur", ["radius": .number(radius)]) }
    /// Replaces all colors by one.
    public static func tint(_ color: String) -> Self { Self("tint", ["color": .string(color)]) }
    /// Lays a color over the image, of which `fraction` remains visible.
    public static func overlay(color: String, fraction: Double = 0.5) -> Self {
        Self("overlay", ["color": .string(color), "fraction": .number(fraction)])
    }
    /// Lays another image over the image.
    public static func overlay(_ source: ImageJob.Source, opacity: Double = 1, mode: String? = nil) -> Self {
        Self(
            "overlay",
            optional: [
                "source": source.rawValue, "opacity": .number(opacity), "mode": mode.map(JSONValue.string),
            ])
    }
    /// Blends the image with a color. The modes have their CSS names in camel case, such as `multiply`.
    public static func blend(_ mode: String, background: String, opacity: Double = 1) -> Self {
        Self("blend", ["mode": .string(mode), "background": .string(background), "opacity": .number(opacity)])
    }
    /// Changes brightness, contrast, saturation and exposure.
    public static func colorControls(
        brightness: Double = 0, contrast: Double = 1, saturation: Double = 1, exposure: Double = 0
    ) -> Self {
        Self(
            "colorControls",
            [
                "brightness": .number(brightness), "contrast": .number(contrast), "saturation": .number(saturation),
                "exposure": .number(exposure),
            ])
    }
    /// Removes the colors.
    public static let blackWhite = Self("blackWhite")
    /// Draws a border, with round corners if a radius is given.
    public static func border(width: Double, color: String = "black", _ radius: Radius? = nil) -> Self {
        Self("border", ["width": .number(width), "color": .string(color)].merging(radius?.member ?? [:]) { $1 })
    }
    /// Shrinks the image in proportion to fit this size.
    public static func downsample(width: Double, height: Double) -> Self {
        Self("downsample", ["width": .number(width), "height": .number(height)])
    }
    /// Sharpens the image.
    public static func sharpen(radius: Double = 0.5, amount: Double = 1) -> Self {
        Self("sharpen", ["radius": .number(radius), "amount": .number(amount)])
    }
    /// Turns the image into squares of this size.
    public static func pixelate(size: Double) -> Self { Self("pixelate", ["size": .number(size)]) }
    /// Blurs all faces. The deviation is a share of the longer side of the area, which exceeds the face by `margin` on
    /// each side, as a share of its longer side.
    public static func blurFaces(amount: Double = 0.15, margin: Double = 0.2, confidence: Double = 0.3) -> Self {
        Self(
            "blurFaces",
            ["amount": .number(amount), "margin": .number(margin), "confidence": .number(confidence)])
    }
    /// Turns all faces into this number of squares along the longer side of the area.
    public static func pixelateFaces(cells: Int = 8, margin: Double = 0.2, confidence: Double = 0.3) -> Self {
        Self(
            "pixelateFaces",
            ["cells": .number(Double(cells)), "margin": .number(margin), "confidence": .number(confidence)])
    }
    /// Places another image in a corner, along a side or in the middle.
    public static func watermark(
        _ source: ImageJob.Source, position: ImageJob.ContentMode = .bottomRight, margin: Double = 0,
        widthFraction: Double? = nil, scale: Double? = nil, offset: Offset? = nil, opacity: Double = 1,
        mode: String? = nil, tiled: Bool = false
    ) -> Self {
        Self(
            "watermark",
            optional: [
                "source": source.rawValue, "position": .string(position.rawValue), "margin": .number(margin),
                "widthFraction": widthFraction.map(JSONValue.number), "scale": scale.map(JSONValue.number),
                "offset": offset?.value, "opacity": .number(opacity), "mode": mode.map(JSONValue.string),
                "tiled": .bool(tiled),
            ])
    }
    /// Rotates the image clockwise.
    public static func rotate(degrees: Double, background: String = "transparent") -> Self {
        Self("rotate", ["degrees": .number(degrees), "background": .string(background)])
    }
    /// Mirrors the image.
    public static func flip(_ direction: Flip = .horizontal) -> Self {
        Self("flip", ["direction": .string(direction.rawValue)])
    }
    /// Enlarges the canvas on each side. The color belongs to the fill `color`.
    public static func pad(
        top: Double = 0, right: Double = 0, bottom: Double = 0, left: Double = 0, fill: Fill = .color,
        color: String? = nil
    ) -> Self {
        Self(
            "pad",
            optional: [
                "top": .number(top), "right": .number(right), "bottom": .number(bottom), "left": .number(left),
                "fill": .string(fill.rawValue), "color": color.map(JSONValue.string),
            ])
    }
    /// Draws a text.
    public static func text(_ text: Text) -> Self { Self("text", optional: text.parameters) }
    /// Clips the image to a shape.
    public static func mask(_ shape: Shape) -> Self { Self("mask", ["shape": .string(shape.rawValue)]) }
    /// Clips the image by the opacity of another image, or by its luminance if it is opaque.
    public static func mask(_ source: ImageJob.Source) -> Self { Self("mask", ["source": source.rawValue]) }
    /// Rotates all hues.
    public static func hue(degrees: Double) -> Self { Self("hue", ["degrees": .number(degrees)]) }
    /// Brightens the midtones (above 1), or darkens them (below 1).
    public static func gamma(_ gamma: Double = 2.2) -> Self { Self("gamma", ["gamma": .number(gamma)]) }
    /// Stretches the lightness to the full range. `lower` and `upper` are percentiles.
    public static func normalize(lower: Double = 1, upper: Double = 99) -> Self {
        Self("normalize", ["lower": .number(lower), "upper": .number(upper)])
    }
    /// Replaces the colors by a gradient between two of them.
    public static func duotone(dark: String, light: String) -> Self {
        Self("duotone", ["dark": .string(dark), "light": .string(light)])
    }
}
