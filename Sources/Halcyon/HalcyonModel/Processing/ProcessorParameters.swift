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
    /// Another picture that fills the whole picture, with an opacity from 0 to 1, blended with the picture by a mode.
    case picture(Source, opacity: Double, mode: BlendMode = .normal)
}

/// The blend modes of `mix-blend-mode` in CSS (Compositing and Blending Level 1, section 10).
public enum BlendMode: String, CaseIterable, Codable, Sendable {
    case normal, multiply, screen, overlay, darken, lighten, colorDodge, colorBurn, hardLight, softLight, difference
    case exclusion
    /// The modes that mix the channels with each other (section 10.2).
    case hue, saturation, color, luminosity

    /// True if each channel of the result depends on that channel alone.
    public var isSeparable: Bool {
        switch self {
        case .hue, .saturation, .color, .luminosity: false
        default: true
        }
    }
}

/// Parameters of ``Processor/blend(_:)``, which blends the picture onto a background color, as Kingfisher's
/// `BlendImageProcessor`.
public struct Blend: Hashable, Codable, Sendable {
    /// The blend mode.
    public var mode: BlendMode
    /// The opacity of the picture, 0 to 1.
    public var opacity: Double
    /// The color behind the picture.
    public var background: CSSColor

    /// Creates parameters for blending.
    public init(mode: BlendMode, opacity: Double = 1, background: CSSColor) {
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
    /// The factor of the watermark's own size, above 0 to 16, without ``widthFraction``.
    public var scale: Double
    /// The distance by which the watermark is moved from its position, in pixels to the right and downward. It may be
    /// moved beyond the edge of the picture.
    public var offset: PixelOffset
    /// The opacity, 0 to 1.
    public var opacity: Double
    /// The mode by which the watermark is blended with the picture.
    public var mode: BlendMode
    /// True if the watermark is repeated over the whole picture, starting at ``position``.
    public var tiled: Bool

    /// Creates parameters for a watermark.
    public init(
        source: Source, position: ContentMode = .bottomRight, margin: Int = 0, widthFraction: Double? = nil,
        scale: Double = 1, offset: PixelOffset = .zero, opacity: Double = 1, mode: BlendMode = .normal,
        tiled: Bool = false
    ) {
        self.source = source
        self.position = position
        self.margin = margin
        self.widthFraction = widthFraction
        self.scale = scale
        self.offset = offset
        self.opacity = opacity
        self.mode = mode
        self.tiled = tiled
    }
}

/// A distance in whole pixels, to the right and downward.
public struct PixelOffset: Hashable, Codable, Sendable {
    /// The distance to the right; negative to the left.
    public var x: Int
    /// The distance downward; negative upward.
    public var y: Int

    /// Creates an offset.
    public init(x: Int, y: Int) {
        self.x = x
        self.y = y
    }

    /// No distance.
    public static let zero = PixelOffset(x: 0, y: 0)
}

/// Parameters of ``Processor/pad(_:)``.
public struct Pad: Hashable, Codable, Sendable {
    /// The content of the new area.
    public enum Fill: String, CaseIterable, Codable, Sendable {
        /// The color.
        case color
        /// The pixels at the edge of the picture, repeated outward.
        case edge
        /// The picture, mirrored at each edge.
        case mirror
        /// The picture, enlarged to cover the canvas and blurred.
        case blur
    }

    /// The lengths that are added to the sides, in pixels.
    public var top, right, bottom, left: Int
    /// The content of the new area.
    public var fill: Fill
    /// The color of the new area with ``Fill/color``.
    public var color: CSSColor

    /// Creates parameters for padding.
    public init(
        top: Int = 0, right: Int = 0, bottom: Int = 0, left: Int = 0, fill: Fill = .color,
        color: CSSColor = .transparent
    ) {
        self.top = top
        self.right = right
        self.bottom = bottom
        self.left = left
        self.fill = fill
        self.color = color
    }

    /// True if nothing is added.
    public var isEmpty: Bool { top == 0 && right == 0 && bottom == 0 && left == 0 }
}

/// Parameters of ``Processor/text(_:)``.
public struct TextOverlay: Hashable, Codable, Sendable {
    /// The alignment of lines with each other.
    public enum Alignment: String, CaseIterable, Codable, Sendable {
        case left, center, right
    }

    /// The maximum length of a text, in Unicode scalars.
    public static let longestText = 500
    /// The widest outline, in pixels.
    public static let widestOutline = 40
    /// The range of font sizes, in pixels.
    public static let sizes = 1.0...2000.0

    /// The text. Line feeds separate lines; longer lines are wrapped.
    public var text: String
    /// The name of a font family.
    public var font: String
    /// True for the bold face of the family.
    public var bold: Bool
    /// True for the italic face of the family.
    public var italic: Bool
    /// The size of the font in pixels; nil for the largest size that fits. A text that does not fit is reduced.
    public var size: Double?
    /// The width of the box that contains the text, in pixels; nil for the picture without its margins.
    public var width: Int?
    /// The height of the box that contains the text, in pixels; nil for the picture without its margins.
    public var height: Int?
    /// The alignment of lines.
    public var align: Alignment
    /// The color of the text.
    public var color: CSSColor
    /// The width of the outline around the glyphs, in pixels; 0 for none.
    public var outlineWidth: Int
    /// The color of the outline.
    public var outlineColor: CSSColor
    /// The opacity of the text and its outline, 0 to 1.
    public var opacity: Double
    /// The position of the text, one of the nine unscaled content modes.
    public var position: ContentMode
    /// The distance from the edges, in pixels.
    public var margin: Int
    /// The distance by which the text is moved from its position, in pixels.
    public var offset: PixelOffset

    /// Creates parameters for text.
    public init(
        _ text: String, font: String, bold: Bool = false, italic: Bool = false, size: Double? = nil,
        width: Int? = nil, height: Int? = nil, align: Alignment = .left, color: CSSColor = .black,
        outlineWidth: Int = 0, outlineColor: CSSColor = .white, opacity: Double = 1,
        position: ContentMode = .center, margin: Int = 0, offset: PixelOffset = .zero
    ) {
        self.text = text
        self.font = font
        self.bold = bold
        self.italic = italic
        self.size = size
        self.width = width
        self.height = height
        self.align = align
        self.color = color
        self.outlineWidth = outlineWidth
        self.outlineColor = outlineColor
        self.opacity = opacity
        self.position = position
        self.margin = margin
        self.offset = offset
    }

    /// Returns true if the name can be that of a font family: 1 to 64 letters, digits, spaces, dots, hyphens and
    /// underscores of ASCII, without a space at either end.
    public static func isFont(_ name: String) -> Bool {
        let isPlain = name.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: " "), UInt8(ascii: "."), UInt8(ascii: "-"),
                UInt8(ascii: "_"):
                true
            default: false
            }
        }
        return isPlain && (1...64).contains(name.utf8.count) && !name.hasPrefix(" ") && !name.hasSuffix(" ")
    }
}

/// Parameters of ``Processor/mask(_:)``.
public enum Mask: Hashable, Codable, Sendable {
    /// A shape that touches the sides of the picture.
    case shape(Shape)
    /// The opacity of another picture that is stretched over the picture, or its luminance if it is opaque, as
    /// `mask-image` and `mask-mode` in CSS.
    case picture(Source)

    /// The shapes.
    public enum Shape: String, CaseIterable, Codable, Sendable {
        /// The largest circle, in the center of the picture.
        case circle
        /// The ellipse, triangle and so on that touch all four sides.
        case ellipse, triangle, diamond, pentagon, hexagon, octagon, star, heart
    }
}

/// Parameters of ``Processor/hideFaces(_:)``.
public struct FaceHiding: Hashable, Codable, Sendable {
    /// The change to the pixels of a face.
    public enum Method: Hashable, Codable, Sendable {
        /// A Gaussian blur, whose standard deviation is this share of the longer side of the area.
        case blur(amount: Double)
        /// This number of squares of one color along the longer side of the area.
        case pixelate(cells: Int)
    }

    /// The change to the pixels.
    public var method: Method
    /// The share of the longer side of a face by which the area exceeds the face on each side, 0 to 2.
    public var margin: Double
    /// The minimum confidence of a face, 0 to 1.
    public var confidence: Double

    /// Creates parameters for hiding faces.
    public init(_ method: Method, margin: Double = 0.2, confidence: Double = 0.3) {
        self.method = method
        self.margin = margin
        self.confidence = confidence
    }

    /// The name of the processor in jobs.
    public var name: String {
        switch method {
        case .blur: "blurFaces"
        case .pixelate: "pixelateFaces"
        }
    }

    /// Returns the side of the squares for an area of `size`, in pixels.
    public func cell(of size: PixelSize) -> Int {
        guard case .pixelate(let cells) = method else { return 1 }
        let longer = max(size.width, size.height)
        return max(1, (longer + cells - 1) / cells)
    }
}

/// Parameters of ``Processor/normalize(_:)``: the percentiles of lightness that become black and white.
public struct Normalize: Hashable, Codable, Sendable {
    /// The percentile that becomes black, 0 to 49.
    public var lower: Double
    /// The percentile that becomes white, 51 to 100.
    public var upper: Double

    /// Creates parameters for normalizing.
    public init(lower: Double = 1, upper: Double = 99) {
        self.lower = lower
        self.upper = upper
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
