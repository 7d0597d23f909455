/// One output of a job: a sizing and an encoding.
public struct Variant: Hashable, Sendable {
    /// The geometry.
    public var sizing: Sizing
    /// How pixels are interpolated when the size changes.
    public var interpolationQuality: InterpolationQuality
    /// The encoding.
    public var output: OutputOptions

    /// Takes the values as they are.
    public init(
        sizing: Sizing, interpolationQuality: InterpolationQuality = .default, output: OutputOptions = OutputOptions()
    ) {
        self.sizing = sizing
        self.interpolationQuality = interpolationQuality
        self.output = output
    }
}

/// Core Graphics' interpolation qualities, by name.
public enum InterpolationQuality: String, CaseIterable, Sendable {
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

/// A format of image files, by the name that jobs and events use.
public enum ImageFormat: String, CaseIterable, Sendable {
    case jpeg, png, webp, avif, gif, tiff, jxl, heic, svg, pdf

    /// The formats that this version writes.
    public static let writable: [ImageFormat] = [.jpeg, .png, .webp, .avif]

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
}

/// How an output is encoded.
public struct OutputOptions: Hashable, Sendable {
    /// nil for `auto`: the kind of the source is kept.
    public var format: ImageFormat?
    /// 1 to 100; nil for the format's default.
    public var quality: Int?
    /// Without loss, where the format can (WebP, AVIF; PNG always is).
    public var lossless: Bool
    /// 0 (fast) to 9 (small); nil for the format's default.
    public var effort: Int?
    /// Progressive JPEG or interlaced PNG.
    public var progressive: Bool

    /// Takes the values as they are.
    public init(
        format: ImageFormat? = nil, quality: Int? = nil, lossless: Bool = false, effort: Int? = nil,
        progressive: Bool = false
    ) {
        self.format = format
        self.quality = quality
        self.lossless = lossless
        self.effort = effort
        self.progressive = progressive
    }
}
