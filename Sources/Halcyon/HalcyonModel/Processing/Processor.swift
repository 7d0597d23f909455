/// A processing step that is applied to the sized picture, in the order of the job. Names and most semantics match
/// Kingfisher's image processors.
///
/// Lengths are in pixels of the output. Lengths that a job gives in points have been multiplied by its `screenScale`.
public enum Processor: Hashable, Codable, Sendable {
    /// Rounds the corners.
    case roundCorner(RoundCorner)
    /// Resizes the picture to a reference size by a mode.
    case resize(PixelSize, ResizeMode)
    /// Crops the picture to at most this size around an anchor.
    case crop(PixelSize, anchor: UnitPoint)
    /// Applies a Gaussian blur with this standard deviation in pixels, as `blur()` in CSS.
    case blur(radius: Double)
    /// Draws the color over the picture, within the picture's alpha channel.
    case tint(CSSColor)
    /// Draws a color or another picture over the picture, within the picture's alpha channel.
    case overlay(Overlay)
    /// Blends the picture with a background color.
    case blend(Blend)
    /// Adjusts brightness, contrast, saturation and exposure.
    case colorControls(ColorControls)
    /// Converts the picture to gray and lightens it by 0.7 stops, as Kingfisher's `BlackWhiteProcessor`.
    case blackWhite
    /// Draws a line inside the edge.
    case border(Border)
    /// Shrinks the picture to fit inside this size; never enlarges it.
    case downsample(PixelSize)
    /// Applies an unsharp mask to the lightness.
    case sharpen(Sharpen)
    /// Replaces the picture with squares of one color, each this many pixels wide.
    case pixelate(Int)
    /// Places another picture on this one.
    case watermark(Watermark)
    /// Rotates the picture clockwise, by 0 up to 360 degrees, and enlarges the canvas to hold it.
    case rotate(degrees: Double, background: CSSColor)
    /// Mirrors the picture.
    case flip(Flip)
    /// Enlarges the canvas on each side, and fills the new area.
    case pad(Pad)
    /// Draws text on the picture.
    case text(TextOverlay)
    /// Clips the picture to a shape, or by the opacity of another picture.
    case mask(Mask)
    /// Rotates all hues by this angle in degrees, 0 up to 360, as `hue-rotate()` in CSS.
    case hue(degrees: Double)
    /// Brightens the midtones (above 1) or darkens them (below 1): each sample becomes its power of 1/gamma.
    case gamma(Double)
    /// Stretches the lightness to the full range.
    case normalize(Normalize)
    /// Replaces the colors by a gradient between two of them, according to their luma.
    case duotone(dark: CSSColor, light: CSSColor)
    /// Blurs or pixelates all faces.
    case hideFaces(FaceHiding)
    /// Applies a processor that was registered by name.
    case custom(CustomExtension)
}

/// A processor or sizer that the host program registered by name, with its parameters.
public struct CustomExtension: Hashable, Codable, Sendable {
    /// The registered name.
    public var name: String
    /// The parameters as compact JSON with sorted members; `{}` if there are none.
    public var parameters: String

    /// Creates a reference to a registered processor or sizer.
    public init(name: String, parameters: String = "{}") {
        self.name = name
        self.parameters = parameters
    }

    /// Compares the UTF-8 bytes. Swift strings are equal if they are canonically equivalent, but host programs may
    /// distinguish them.
    public static func == (left: CustomExtension, right: CustomExtension) -> Bool {
        left.name.utf8.elementsEqual(right.name.utf8) && left.parameters.utf8.elementsEqual(right.parameters.utf8)
    }

    /// Hashes the UTF-8 bytes.
    public func hash(into hasher: inout Hasher) {
        for text in [name, parameters] {
            hasher.combine(text.utf8.count)
            for byte in text.utf8 { hasher.combine(byte) }
        }
    }
}

extension Processor {
    /// The additional picture that the processor requires; nil if it requires none.
    public var asset: Source? {
        switch self {
        case .overlay(let overlay):
            if case .picture(let source, _, _) = overlay { source } else { nil }
        case .watermark(let watermark): watermark.source
        case .mask(.picture(let source)): source
        default: nil
        }
    }

    /// True if the processor can make opaque pixels transparent.
    public var makesTransparency: Bool {
        switch self {
        case .roundCorner(let corners): !(corners.background?.isOpaque ?? false)
        case .border(let border): border.radius != .pixels(0)
        case .rotate(let degrees, let background):
            !background.isOpaque && degrees.truncatingRemainder(dividingBy: 90) != 0
        case .blend(let blend): blend.opacity < 1 && !blend.background.isOpaque
        case .pad(let pad): pad.fill == .color && !pad.color.isOpaque && !pad.isEmpty
        case .mask: true
        case .duotone(let dark, let light): !dark.isOpaque || !light.isOpaque
        default: false
        }
    }
}

extension Processor {
    /// The names of the built-in processors in jobs.
    public static let names: Set = [
        "roundCorner", "resize", "crop", "blur", "tint", "overlay", "blend", "colorControls", "blackWhite", "border",
        "downsample", "sharpen", "pixelate", "watermark", "rotate", "flip",
        "pad", "text", "mask", "hue", "gamma", "normalize", "duotone", "blurFaces", "pixelateFaces",
    ]

    /// The name of the processor in jobs.
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
        case .pad: "pad"
        case .text: "text"
        case .mask: "mask"
        case .hue: "hue"
        case .gamma: "gamma"
        case .normalize: "normalize"
        case .duotone: "duotone"
        case .hideFaces(let hiding): hiding.name
        case .custom(let rule): rule.name
        }
    }

    /// True if the processor hides faces, which have to be found first.
    public var hidesFaces: Bool { if case .hideFaces = self { true } else { false } }

    /// True if positions in fractions of the picture are the same before and after the processor.
    public var preservesPositions: Bool {
        switch self {
        case .crop, .rotate, .flip, .pad, .custom: false
        default: true
        }
    }
}

extension Sizer {
    /// The names of the built-in sizers in jobs.
    public static let names: Set = ["natural", "aspectScaleDownByWidth", "aspectScaleDownByHeight"]
}
