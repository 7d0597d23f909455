/// The corners of a picture.
public enum Corner: String, CaseIterable, Codable, Sendable {
    case topLeft, topRight, bottomLeft, bottomRight
}

/// How far corners are cut (Kingfisher's `Radius`).
public enum CornerRadius: Hashable, Codable, Sendable {
    /// So many pixels.
    case pixels(Double)
    /// This part of the picture's width, 0 to 1.
    case widthFraction(Double)
    /// This part of its height, 0 to 1.
    case heightFraction(Double)

    /// In pixels, for a picture of that size: at most half of the shorter side.
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
    /// How far.
    public var radius: CornerRadius
    /// Which.
    public var corners: Set<Corner>
    /// What is seen in the corners; nil for nothing.
    public var background: CSSColor?

    /// Takes the values as they are.
    public init(radius: CornerRadius, corners: Set<Corner> = Set(Corner.allCases), background: CSSColor? = nil) {
        self.radius = radius
        self.corners = corners
        self.background = background
    }
}

/// Parameters of ``Processor/overlay(_:)``.
public enum Overlay: Hashable, Codable, Sendable {
    /// A colour that leaves `fraction` of the picture, 0 (the colour alone) to 1 (the picture alone), as Kingfisher counts.
    case color(CSSColor, fraction: Double)
    /// A picture, filling the whole, with this opacity from 0 to 1.
    case picture(Source, opacity: Double)
}

/// Parameters of ``Processor/blend(_:)``: a colour behind, the picture blended onto it (Kingfisher's `BlendImageProcessor`).
public struct Blend: Hashable, Codable, Sendable {
    /// The blend modes of CSS' `mix-blend-mode` that work channel by channel (Compositing and Blending 1, section 10.1).
    public enum Mode: String, CaseIterable, Codable, Sendable {
        case normal, multiply, screen, overlay, darken, lighten, colorDodge, colorBurn, hardLight, softLight, difference
        case exclusion
    }

    /// How.
    public var mode: Mode
    /// Of the picture, 0 to 1.
    public var opacity: Double
    /// What it is blended with.
    public var background: CSSColor

    /// Takes the values as they are.
    public init(mode: Mode, opacity: Double = 1, background: CSSColor) {
        self.mode = mode
        self.opacity = opacity
        self.background = background
    }
}

/// Parameters of ``Processor/colorControls(_:)``, as Core Image's `CIColorControls` and `CIExposureAdjust` name them.
public struct ColorControls: Hashable, Codable, Sendable {
    /// Added to each channel of 0…1: -1 to 1, 0 changes nothing.
    public var brightness: Double
    /// Distance from middle grey, 0 to 4; 1 changes nothing.
    public var contrast: Double
    /// Distance from grey of the same luminance, 0 to 4; 1 changes nothing.
    public var saturation: Double
    /// Stops of exposure, -10 to 10: light is multiplied by 2 to that power.
    public var exposure: Double

    /// Takes the values as they are.
    public init(brightness: Double = 0, contrast: Double = 1, saturation: Double = 1, exposure: Double = 0) {
        self.brightness = brightness
        self.contrast = contrast
        self.saturation = saturation
        self.exposure = exposure
    }

    /// What ``Processor/blackWhite`` does.
    public static let blackWhite = ColorControls(saturation: 0, exposure: 0.7)
}

/// Parameters of ``Processor/border(_:)``.
public struct Border: Hashable, Codable, Sendable {
    /// Thickness in pixels, above 0.
    public var width: Double
    /// Of the line.
    public var color: CSSColor
    /// Of its outer edge; the picture is cut to it.
    public var radius: CornerRadius
    /// Which corners are round.
    public var corners: Set<Corner>

    /// Takes the values as they are.
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
    /// Standard deviation in pixels of the blur that is taken off.
    public var radius: Double
    /// How much of the difference is added, 0 to 10.
    public var amount: Double

    /// Takes the values as they are.
    public init(radius: Double, amount: Double) {
        self.radius = radius
        self.amount = amount
    }
}

/// Parameters of ``Processor/watermark(_:)``.
public struct Watermark: Hashable, Codable, Sendable {
    /// The picture to place.
    public var source: Source
    /// Where: one of the nine unscaled content modes.
    public var position: ContentMode
    /// Pixels between it and the edges it lies at.
    public var margin: Int
    /// Its width as a part of the picture's, 0 to 1; nil for its own size. Never larger than the room there is.
    public var widthFraction: Double?
    /// 0 to 1.
    public var opacity: Double
    /// Whether it is laid over the whole like tiles, from ``position`` on.
    public var tiled: Bool

    /// Takes the values as they are.
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

/// Ways to mirror.
public enum Flip: String, CaseIterable, Codable, Sendable {
    /// Left and right change places.
    case horizontal
    /// Above and below change places.
    case vertical
    /// Both.
    case both
}
