/// A step that a sized image goes through. Lengths are in points, colours are CSS colours.
public struct Processor: Sendable, Equatable, Encodable {
    let json: JSONValue

    /// One by its name, such as a processor that a cluster has of its own.
    public init(_ name: String, _ parameters: [String: JSONValue] = [:]) { json = .object([name: .object(parameters)]) }

    private init(_ name: String, given: [String: JSONValue?]) { self.init(name, given.compactMapValues { $0 }) }

    /// How round corners are.
    public enum Radius: Sendable, Equatable {
        /// In points.
        case points(Double)
        /// A fraction of the image's width or height, in 0…1.
        case widthFraction(Double), heightFraction(Double)

        fileprivate var json: [String: JSONValue] {
            switch self {
            case .points(let value): ["radius": .number(value)]
            case .widthFraction(let value): ["widthFraction": .number(value)]
            case .heightFraction(let value): ["heightFraction": .number(value)]
            }
        }
    }

    /// Round corners.
    public static func roundCorner(_ radius: Radius, background: String? = nil) -> Processor {
        Processor(
            "roundCorner", given: radius.json.merging(background.map { ["background": .string($0)] } ?? [:]) { $1 })
    }
    /// Another size, stretched to it.
    public static func resize(width: Double, height: Double) -> Processor {
        Processor("resize", ["width": .number(width), "height": .number(height)])
    }
    /// A part of this size around a point, given in fractions.
    public static func crop(width: Double, height: Double, x: Double = 0.5, y: Double = 0.5) -> Processor {
        Processor(
            "crop",
            [
                "width": .number(width), "height": .number(height), "anchor": ["x": .number(x), "y": .number(y)],
            ])
    }
    /// A Gaussian blur.
    public static func blur(radius: Double) -> Processor { Processor("blur", ["radius": .number(radius)]) }
    /// The colour in place of all others.
    public static func tint(_ color: String) -> Processor { Processor("tint", ["color": .string(color)]) }
    /// A colour laid over it, so much of it.
    public static func overlay(color: String, fraction: Double = 0.5) -> Processor {
        Processor("overlay", ["color": .string(color), "fraction": .number(fraction)])
    }
    /// Another image laid over it.
    public static func overlay(_ source: ImageSource, opacity: Double = 1) -> Processor {
        Processor("overlay", ["source": source.json, "opacity": .number(opacity)])
    }
    /// Blended with a colour by a mode of CSS' names, such as `multiply`.
    public static func blend(_ mode: String, background: String, opacity: Double = 1) -> Processor {
        Processor("blend", ["mode": .string(mode), "background": .string(background), "opacity": .number(opacity)])
    }
    /// Brighter, with more contrast, with more colour, or exposed longer.
    public static func colorControls(
        brightness: Double = 0, contrast: Double = 1, saturation: Double = 1, exposure: Double = 0
    ) -> Processor {
        Processor(
            "colorControls",
            [
                "brightness": .number(brightness), "contrast": .number(contrast), "saturation": .number(saturation),
                "exposure": .number(exposure),
            ])
    }
    /// Without colours.
    public static let blackWhite = Processor("blackWhite")
    /// A border, perhaps with round corners.
    public static func border(width: Double, color: String = "black", _ radius: Radius? = nil) -> Processor {
        Processor("border", ["width": .number(width), "color": .string(color)].merging(radius?.json ?? [:]) { $1 })
    }
    /// Not larger than this, in proportion.
    public static func downsample(width: Double, height: Double) -> Processor {
        Processor("downsample", ["width": .number(width), "height": .number(height)])
    }
    /// Sharper.
    public static func sharpen(radius: Double = 0.5, amount: Double = 1) -> Processor {
        Processor("sharpen", ["radius": .number(radius), "amount": .number(amount)])
    }
    /// In squares of this size.
    public static func pixelate(size: Double) -> Processor { Processor("pixelate", ["size": .number(size)]) }
    /// Another image in a corner or along a side (names as ``ContentMode`` has them).
    public static func watermark(
        _ source: ImageSource, position: ContentMode = .bottomRight, margin: Double = 0, widthFraction: Double? = nil,
        opacity: Double = 1, tiled: Bool = false
    ) -> Processor {
        Processor(
            "watermark",
            given: [
                "source": source.json, "position": .string(position.rawValue), "margin": .number(margin),
                "widthFraction": widthFraction.map(JSONValue.number), "opacity": .number(opacity),
                "tiled": .bool(tiled),
            ])
    }
    /// Turned clockwise.
    public static func rotate(degrees: Double, background: String = "transparent") -> Processor {
        Processor("rotate", ["degrees": .number(degrees), "background": .string(background)])
    }
    /// How an image is mirrored.
    public enum Flip: String, Sendable {
        /// Left and right, or above and below, change places.
        case horizontal, vertical, both
    }
    /// Mirrored.
    public static func flip(_ direction: Flip = .horizontal) -> Processor {
        Processor("flip", ["direction": .string(direction.rawValue)])
    }

    /// As a job has it.
    public func encode(to encoder: any Encoder) throws { try json.encode(to: encoder) }
}
