/// A format of image files, by the name that jobs and events use.
public enum ImageFormat: String, CaseIterable, Codable, Sendable {
    case jpeg, png, webp, avif, gif, tiff, jxl, heic, svg, pdf

    /// The formats that can be asked for; `jxl` and `avif` only work where the installed libraries can write them.
    public static let writable: [ImageFormat] = [.jpeg, .png, .webp, .avif, .gif, .tiff, .jxl]

    /// The media type (IANA).
    public var mediaType: String {
        switch self {
        case .svg: "image/svg+xml"
        case .pdf: "application/pdf"
        default: "image/\(rawValue)"
        }
    }

    /// The usual ending of file names, without the dot.
    public var fileExtension: String { self == .jpeg ? "jpg" : rawValue }

    /// Whether the format can hold transparency.
    public var hasAlpha: Bool { self != .jpeg && self != .pdf }

    /// Whether the format can hold an animation.
    public var hasAnimation: Bool { self == .gif || self == .webp }
}

/// How an output is encoded.
public struct OutputOptions: Hashable, Codable, Sendable {
    /// nil for `auto`: the kind of the source is kept.
    public var format: ImageFormat?
    /// 1 to 100; nil for the format's default.
    public var quality: Int?
    /// Without loss, where the format can (WebP, AVIF, JPEG XL; PNG, GIF and TIFF always are).
    public var lossless: Bool
    /// 0 (fast) to 9 (small); nil for the format's default.
    public var effort: Int?
    /// Progressive JPEG or interlaced PNG.
    public var progressive: Bool
    /// Without EXIF, XMP and IPTC.
    public var stripMetadata: Bool
    /// In the source's own colours, with its ICC profile, and not converted to sRGB.
    public var keepProfile: Bool
    /// How many frames of an animation are kept at most; nil for all.
    public var frames: Int?

    /// Takes the values as they are.
    public init(
        format: ImageFormat? = nil, quality: Int? = nil, lossless: Bool = false, effort: Int? = nil,
        progressive: Bool = false, stripMetadata: Bool = true, keepProfile: Bool = false, frames: Int? = nil
    ) {
        self.format = format
        self.quality = quality
        self.lossless = lossless
        self.effort = effort
        self.progressive = progressive
        self.stripMetadata = stripMetadata
        self.keepProfile = keepProfile
        self.frames = frames
    }
}

/// One output of a job: a sizing, steps of processing, and an encoding.
public struct Variant: Hashable, Codable, Sendable {
    /// The geometry.
    public var sizing: Sizing
    /// How pixels are interpolated when the size changes.
    public var interpolationQuality: InterpolationQuality
    /// What is seen where the image does not reach, and behind it in formats without alpha.
    public var background: CSSColor
    /// What is done to the sized picture, in this order.
    public var processors: [Processor]
    /// What damage to the source does no harm; nil for what the renderer's limits say.
    public var tolerance: Tolerance?
    /// The encoding.
    public var output: OutputOptions
    /// What is to be found out about the output besides its size.
    public var findings: Set<Finding>

    /// Takes the values as they are.
    public init(
        sizing: Sizing, interpolationQuality: InterpolationQuality = .default, background: CSSColor = .transparent,
        processors: [Processor] = [], tolerance: Tolerance? = nil, output: OutputOptions = OutputOptions(),
        findings: Set<Finding> = []
    ) {
        self.sizing = sizing
        self.interpolationQuality = interpolationQuality
        self.background = background
        self.processors = processors
        self.tolerance = tolerance
        self.output = output
        self.findings = findings
    }

    /// The pictures beside the job's own that are needed, each once.
    public var assets: [Source] {
        var assets: [Source] = []
        for asset in processors.compactMap(\.asset) where !assets.contains(asset) { assets.append(asset) }
        return assets
    }
}

/// What an event can say of an output's looks, when it is asked to.
public enum Finding: String, CaseIterable, Codable, Sendable {
    /// The BlurHash text (https://blurha.sh), to show before the image is there.
    case blurhash
    /// The colour that most of it has.
    case dominantColor
}

/// Core Graphics' interpolation qualities, by name.
public enum InterpolationQuality: String, CaseIterable, Codable, Sendable {
    /// Nearest neighbour.
    case none
    /// Linear.
    case low
    /// Cubic.
    case medium
    /// Lanczos3.
    case high
    /// Lanczos3.
    case `default`
}
