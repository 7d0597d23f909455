/// A step of processing, applied to the sized picture in the order the job gives. The names and most of the meanings are
/// Kingfisher's image processors'.
///
/// Lengths are in pixels of the output: what a job gives in points has been multiplied by its `screenScale`.
public enum Processor: Hashable, Codable, Sendable {
    /// Cuts the corners round.
    case roundCorner(RoundCorner)
    /// Another size, by a reference size and a mode.
    case resize(PixelSize, ResizeMode)
    /// A part of that size around an anchor; what the picture has not is not made up.
    case crop(PixelSize, anchor: UnitPoint)
    /// Gaussian blur of this standard deviation in pixels, as CSS' `blur()`.
    case blur(radius: Double)
    /// The colour over the picture, in the picture's own shape.
    case tint(CSSColor)
    /// A colour or another picture over the picture, in its own shape.
    case overlay(Overlay)
    /// The picture blended with a colour behind it.
    case blend(Blend)
    /// Brightness, contrast, saturation and exposure.
    case colorControls(ColorControls)
    /// Grey, and lighter by 0.7 stops: Kingfisher's `BlackWhiteProcessor`.
    case blackWhite
    /// A line along the edge, drawn inside.
    case border(Border)
    /// Smaller, to fit inside this size; never larger.
    case downsample(PixelSize)
    /// Unsharp masking of lightness.
    case sharpen(Sharpen)
    /// Squares of one colour, this many pixels wide.
    case pixelate(Int)
    /// Another picture, placed on this one.
    case watermark(Watermark)
    /// Turned clockwise by degrees, 0 up to 360, the canvas growing with it.
    case rotate(degrees: Double, background: CSSColor)
    /// Mirrored.
    case flip(Flip)
    /// One that was registered by name.
    case custom(CustomRule)
}

/// A processor or sizer of the host program's own, by the name it was registered under, with its parameters.
public struct CustomRule: Hashable, Codable, Sendable {
    /// The name.
    public var name: String
    /// The parameters as compact JSON, its members in the order of their names; `{}` for none.
    public var parameters: String

    /// Takes the values as they are.
    public init(name: String, parameters: String = "{}") {
        self.name = name
        self.parameters = parameters
    }

    /// Whether the bytes are the same. Swift's strings are equal when they look the same; a program may tell those apart.
    public static func == (left: CustomRule, right: CustomRule) -> Bool {
        left.name.utf8.elementsEqual(right.name.utf8) && left.parameters.utf8.elementsEqual(right.parameters.utf8)
    }

    /// Of the bytes.
    public func hash(into hasher: inout Hasher) {
        for text in [name, parameters] {
            hasher.combine(text.utf8.count)
            for byte in text.utf8 { hasher.combine(byte) }
        }
    }
}

extension Processor {
    /// The picture beside the job's own that is needed.
    public var asset: Source? {
        switch self {
        case .overlay(let overlay):
            if case .picture(let source, _) = overlay { source } else { nil }
        case .watermark(let watermark): watermark.source
        default: nil
        }
    }

    /// Whether the result has transparent pixels where the picture had none.
    public var makesTransparency: Bool {
        switch self {
        case .roundCorner(let corners): !(corners.background?.isOpaque ?? false)
        case .border(let border): border.radius != .pixels(0)
        case .rotate(let degrees, let background):
            !background.isOpaque && degrees.truncatingRemainder(dividingBy: 90) != 0
        case .blend(let blend): blend.opacity < 1 && !blend.background.isOpaque
        default: false
        }
    }
}

extension Processor {
    /// The names of Halcyon's own processors, as jobs write them.
    public static let names: Set = [
        "roundCorner", "resize", "crop", "blur", "tint", "overlay", "blend", "colorControls", "blackWhite", "border",
        "downsample", "sharpen", "pixelate", "watermark", "rotate", "flip",
    ]

    /// The name that a job gives it.
    public var name: String {
        switch self {
        case .roundCorner: "roundCorner"
        case .resize: "resize"
        case .crop: "crop"
        case .blur: "blur"
        case .tint: "tint"
        case .overlay: "overlay"
        case .blend: "blend"
        case .colorControls: "colorControls"
        case .blackWhite: "blackWhite"
        case .border: "border"
        case .downsample: "downsample"
        case .sharpen: "sharpen"
        case .pixelate: "pixelate"
        case .watermark: "watermark"
        case .rotate: "rotate"
        case .flip: "flip"
        case .custom(let rule): rule.name
        }
    }
}

extension Sizer {
    /// The names of Halcyon's own sizers, as jobs write them.
    public static let names: Set = ["natural", "aspectScaleDownByWidth", "aspectScaleDownByHeight"]
}
