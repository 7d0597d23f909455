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
    public static func overlay(_ source: ImageJob.Source, opacity: Double = 1) -> Self {
        Self("overlay", ["source": source.rawValue, "opacity": .number(opacity)])
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
    /// Places another image in a corner, along a side or in the middle.
    public static func watermark(
        _ source: ImageJob.Source, position: ImageJob.ContentMode = .bottomRight, margin: Double = 0,
        widthFraction: Double? = nil, opacity: Double = 1, tiled: Bool = false
    ) -> Self {
        Self(
            "watermark",
            optional: [
                "source": source.rawValue, "position": .string(position.rawValue), "margin": .number(margin),
                "widthFraction": widthFraction.map(JSONValue.number), "opacity": .number(opacity),
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
}
