/// The corners of a picture.
public enum Corner: String, CaseIterable, Codable, Sendable {
    case topLeft, topRight, bottomLeft, bottomRight
}

/// A corner radius, as Kingfisher's `Radius`.
public enum CornerRadius: Hashable, Codable, Sendable {
    /// A radius in pixels.
    case pixels(Double)
    /// A fraction of the picture's width, 0 to 1.
    case widthFraction(Double)
    /// A fraction of the picture's height, 0 to 1.
    case heightFraction(Double)

    /// Returns the radius in pixels for a picture of the given size; at most half of the shorter side.
    public func pixels(in size: PixelSize) -> Double {
        let radius =
            switch self {
            case .pixels(let pixels): pixels
            case .widthFraction(let fraction): fraction * Double(size.width)
            case .heightFraction(let fraction): fraction * Double(size.height)
            }
        return min(radius, Double(min(size.width, size.height)) / 2)
    }
}

/// Parameters of ``Processor/roundCorner(_:)``.
public struct RoundCorner: Hashable, Codable, Sendable {
    /// The radius of the corners.
    public var radius: CornerRadius
    /// The corners to round.
    public var corners: Set<Corner>
    /// The color behind the corners; nil for transparency.
    public var background: CSSColor?

    /// Creates parameters for rounding corners.
    public init(radius: CornerRadius, corners: Set<Corner> = Set(Corner.allCases), background: CSSColor? = nil) {
        self.radius = radius
        self.corners = corners
        self.background = background
    }
}

/// Parameters of ``Processor/overlay(_:)``.
public enum Overlay: Hashable, Codable, Sendable {
    /// A color that leaves `fraction` of the picture visible, from 0 (only the color) to 1 (only the picture), as in
    /// Kingfisher.
    case color(CSSColor, fraction: Double)
    /// Another picture that fills the whole picture, with an opacity from 0 to 1.
    case picture(Source, opacity: Double)
}

/// Parameters of ``Processor/blend(_:)``, which blends the picture onto a background color, as Kingfisher's
/// `BlendImageProcessor`.
public struct Blend: Hashable, Codable, Sendable {
    /// The separable blend modes of `mix-blend-mode` in CSS (Compositing and Blending Level 1, section 10.1).
    public enum Mode: String, CaseIterable, Codable, Sendable {
        case normal, multiply, screen, overlay, darken, lighten, colorDodge, colorBurn, hardLight, softLight, difference
        case exclusion
    }

    /// The blend mode.
    public var mode: Mode
    /// The opacity of the picture, 0 to 1.
    public var opacity: Double
    /// The color behind the picture.
    public var background: CSSColor

    /// Creates parameters for blending.
    public init(mode: Mode, opacity: Double = 1, background: CSSColor) {
        self.mode = mode
        self.opacity = opacity
        self.background = background
    }
}

/// Parameters of ``Processor/colorControls(_:)``, with the names of Core Image's `CIColorControls` and
/// `CIExposureAdjust`.
public struct ColorControls: Hashable, Codable, Sendable {
    /// The value added to each channel of 0…1, from -1 to 1; 0 changes nothing.
    public var brightness: Double
    /// The factor of the distance from middle gray, 0 to 4; 1 changes nothing.
    public var contrast: Double
    /// The factor of the distance from gray of the same luminance, 0 to 4; 1 changes nothing.
    public var saturation: Double
    /// The exposure in stops, -10 to 10: light is multiplied by 2 to this power.
    public var exposure: Double

    /// Creates color controls. The defaults change nothing.
    public init(brightness: Double = 0, contrast: Double = 1, saturation: Double = 1, exposure: Double = 0) {
        self.brightness = brightness
        self.contrast = contrast
        self.saturation = saturation
        self.exposure = exposure
    }

    /// The color controls that ``Processor/blackWhite`` applies.
    public static let blackWhite = ColorControls(saturation: 0, exposure: 0.7)
}

/// Parameters of ``Processor/border(_:)``.
public struct Border: Hashable, Codable, Sendable {
    /// The line width in pixels, above 0.
    public var width: Double
    /// The color of the line.
    public var color: CSSColor
    /// The radius of the outer edge, to which the picture is clipped.
    public var radius: CornerRadius
    /// The corners to round.
    public var corners: Set<Corner>

    /// Creates parameters for a border.
    public init(
        width: Double, color: CSSColor, radius: CornerRadius = .pixels(0), corners: Set<Corner> = Set(Corner.allCases)
    ) {
        self.width = width
        self.color = color
        self.radius = radius
        self.corners = corners
    }
}

/// Parameters of ``Processor/sharpen(_:)``.
public struct Sharpen: Hashable, Codable, Sendable {
    /// The standard deviation of the subtracted blur, in pixels.
    public var radius: Double
    /// The strength of the sharpening, 0 to 10: the factor of the difference that is added.
    public var amount: Double

    /// Creates parameters for sharpening.
    public init(radius: Double, amount: Double) {
        self.radius = radius
        self.amount = amount
    }
}

/// Parameters of ``Processor/watermark(_:)``.
public struct Watermark: Hashable, Codable, Sendable {
    /// The picture to place.
    public var source: Source
    /// The position, one of the nine unscaled content modes.
    public var position: ContentMode
    /// The distance from the edges, in pixels.
    public var margin: Int
    /// The width as a fraction of the picture's width, 0 to 1; nil for the watermark's own size. The watermark is
    /// reduced to fit inside the margins.
    public var widthFraction: Double?
    /// The opacity, 0 to 1.
    public var opacity: Double
    /// True if the watermark is repeated over the whole picture, starting at ``position``.
    public var tiled: Bool

    /// Creates parameters for a watermark.
    public init(
        source: Source, position: ContentMode = .bottomRight, margin: Int = 0, widthFraction: Double? = nil,
        opacity: Double = 1, tiled: Bool = false
    ) {
        self.source = source
        self.position = position
        self.margin = margin
        self.widthFraction = widthFraction
        self.opacity = opacity
        self.tiled = tiled
    }
}

/// The axes along which a picture is mirrored.
public enum Flip: String, CaseIterable, Codable, Sendable {
    /// Swaps left and right.
    case horizontal
    /// Swaps top and bottom.
    case vertical
    /// Swaps both.
    case both
}
