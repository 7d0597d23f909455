/// An image file format, by its name in jobs and events.
public enum ImageFormat: String, CaseIterable, Codable, Sendable {
    case jpeg, png, webp, avif, gif, tiff, jxl, heic, svg, pdf, jp2, bmp, ico
    /// The facts about a source that a variant with ``Variant/info`` reports. No source has this format.
    case json

    /// The formats that jobs can request. `jxl` and `avif` require support in the installed libraries.
    public static let writable: [ImageFormat] = [.jpeg, .png, .webp, .avif, .gif, .tiff, .jxl]

    /// The IANA media type.
    public var mediaType: String {
        switch self {
        case .svg: "image/svg+xml"
        case .ico: "image/vnd.microsoft.icon"
        case .pdf, .json: "application/\(rawValue)"
        default: "image/\(rawValue)"
        }
    }

    /// The usual file extension, without the dot.
    public var fileExtension: String { self == .jpeg ? "jpg" : rawValue }

    /// True if the format supports transparency.
    public var hasAlpha: Bool { self != .jpeg && self != .pdf && self != .json }

    /// True if the format supports animations.
    public var hasAnimation: Bool { self == .gif || self == .webp }

    /// True if a page or a frame of the format can be selected.
    public var hasPages: Bool { hasAnimation || self == .pdf || self == .tiff }
}

/// The encoding options of an output.
public struct OutputOptions: Hashable, Codable, Sendable {
    /// The format; nil for `auto`, which derives it from the source's format.
    public var format: ImageFormat?
    /// True for `best`: the output is encoded in several formats, and the smallest file is kept. ``format`` is nil.
    public var choosesFormat: Bool
    /// The quality, 1 to 100; nil for the format's default.
    public var quality: Int?
    /// The similarity to the picture before encoding, 0.5 to 0.9999, that the lowest sufficient quality is searched
    /// for; nil for a fixed quality.
    public var similarity: Double?
    /// The maximum size of the file in bytes; nil for any.
    public var maximumBytes: Int?
    /// True if the picture may become smaller than requested to reach ``maximumBytes``.
    public var allowsResizing: Bool
    /// True for lossless compression, where the format supports it (WebP, AVIF, JPEG XL; PNG, GIF and TIFF are always
    /// lossless).
    public var lossless: Bool
    /// True for lossless WebP after a preprocessing whose strength follows from the quality.
    public var nearLossless: Bool
    /// The resolution of the colors in JPEG and AVIF; nil for the encoder's choice.
    public var chromaSubsampling: ChromaSubsampling?
    /// The number of bits per sample, 12 or 16; nil for 8.
    public var bitDepth: Int?
    /// The palette of a PNG or GIF; nil for the format's default.
    public var quantization: Quantization?
    /// The compression effort, 0 (fast) to 9 (small); nil for the format's default.
    public var effort: Int?
    /// True for a progressive JPEG or an interlaced PNG.
    public var progressive: Bool
    /// True if EXIF, XMP and IPTC are removed.
    public var stripMetadata: Bool
    /// True if the source's color space and ICC profile are preserved instead of converting to sRGB.
    public var keepProfile: Bool
    /// The color space of the output, whose profile is embedded; nil for sRGB without a profile.
    public var profile: OutputProfile?
    /// The maximum number of frames of an animation; nil for all.
    public var frames: Int?

    /// Creates encoding options.
    public init(
        format: ImageFormat? = nil, quality: Int? = nil, lossless: Bool = false, effort: Int? = nil,
        progressive: Bool = false, stripMetadata: Bool = true, keepProfile: Bool = false, frames: Int? = nil,
        choosesFormat: Bool = false, similarity: Double? = nil, maximumBytes: Int? = nil, allowsResizing: Bool = false,
        nearLossless: Bool = false, chromaSubsampling: ChromaSubsampling? = nil, quantization: Quantization? = nil,
        profile: OutputProfile? = nil, bitDepth: Int? = nil
    ) {
        self.format = format
        self.choosesFormat = choosesFormat
        self.similarity = similarity
        self.maximumBytes = maximumBytes
        self.allowsResizing = allowsResizing
        self.nearLossless = nearLossless
        self.chromaSubsampling = chromaSubsampling
        self.bitDepth = bitDepth
        self.quantization = quantization
        self.profile = profile
        self.quality = quality
        self.lossless = lossless
        self.effort = effort
        self.progressive = progressive
        self.stripMetadata = stripMetadata
        self.keepProfile = keepProfile
        self.frames = frames
    }

    /// The similarity that `best` aims for if the job gives none.
    public static let standardSimilarity = 0.98

    /// The similarity to search for; nil for a fixed quality and for lossless formats chosen by `best`.
    public var targetSimilarity: Double? {
        similarity ?? (choosesFormat && !lossless ? Self.standardSimilarity : nil)
    }

    /// The formats that can have a number of bits per sample other than 8.
    public static func formats(ofBitDepth bits: Int) -> [ImageFormat] {
        switch bits {
        // 10 bits crash the encoder of libheif 1.15.
        case 12: [.avif]
        case 16: [.png, .tiff, .jxl]
        default: []
        }
    }

    /// True for `auto`.
    public var hasAutomaticFormat: Bool { format == nil && !choosesFormat }

    /// True if the output may be encoded more than once.
    public var isSearched: Bool { choosesFormat || similarity != nil || maximumBytes != nil }
}

/// The resolution of the two color channels, relative to that of the brightness.
public enum ChromaSubsampling: String, CaseIterable, Codable, Sendable {
    /// The full resolution.
    case full = "4:4:4"
    /// Half the resolution along each side.
    case half = "4:2:0"
}

/// The color spaces that outputs can be converted to.
public enum OutputProfile: String, CaseIterable, Codable, Sendable {
    /// Display P3: the primaries of DCI-P3 with the white point and the transfer curve of sRGB.
    case p3
}

/// The reduction of a picture to a palette of few colors.
public struct Quantization: Hashable, Codable, Sendable {
    /// The numbers of colors that PNG and GIF can encode.
    public static let sizes = [2, 4, 16, 256]
    /// The maximum number of colors, one of ``sizes``.
    public var colors: Int
    /// The amount of error diffusion, 0 to 1.
    public var dither: Double

    /// Creates a reduction.
    public init(colors: Int = 256, dither: Double = 1) {
        self.colors = colors
        self.dither = dither
    }
}

/// An output of a job: its sizing, processing steps and encoding.
public struct Variant: Hashable, Codable, Sendable {
    /// The page of a PDF or TIFF, or the first frame of an animation, from 1.
    public var page: Int
    /// The geometry of the output.
    public var sizing: Sizing
    /// The interpolation used for resizing.
    public var interpolationQuality: InterpolationQuality
    /// True if light is averaged, and not its encoding in sRGB, when the image is resized.
    public var linearLight: Bool
    /// The color of areas that the image does not cover, and behind transparent pixels in formats without alpha.
    public var background: CSSColor
    /// The processing steps, applied to the upright picture before it is cropped and sized, in this order.
    public var before: [Processor]
    /// The processing steps, applied to the sized picture in this order.
    public var processors: [Processor]
    /// The tolerated damage to the source; nil for the renderer's setting.
    public var tolerance: Tolerance?
    /// The encoding options.
    public var output: OutputOptions
    /// The analyses of the output that the job requests.
    public var findings: Set<AnalysisKind>
    /// The facts about the source that are reported instead of rendering an image; nil to render. With facts, the other
    /// properties have their defaults, except ``page``, ``tolerance`` and ``findings``.
    public var info: InfoOptions?
    /// The name and version of the detector, which are part of the key of variants that need it.
    public var detector = Self.standardDetector
    /// True for the picture that a detector receives: the result consists of RGB samples of 8 bits, row by row.
    public var isDetectorInput = false

    /// The name and version of the detector that Halcyon provides.
    public static let standardDetector = "opencv-centerface/1"

    /// Creates a variant.
    public init(
        sizing: Sizing, interpolationQuality: InterpolationQuality = .default, linearLight: Bool = false,
        background: CSSColor = .transparent, before: [Processor] = [], processors: [Processor] = [],
        tolerance: Tolerance? = nil, output: OutputOptions = OutputOptions(),
        findings: Set<AnalysisKind> = [], info: InfoOptions? = nil, page: Int = 1
    ) {
        self.page = page
        self.sizing = sizing
        self.interpolationQuality = interpolationQuality
        self.linearLight = linearLight
        self.background = background
        self.before = before
        self.processors = processors
        self.tolerance = tolerance
        self.output = output
        self.findings = findings
        self.info = info
    }

    /// The things that a detector has to find. A gravity without effect needs none.
    public var detections: Set<DetectionKind> {
        var kinds: Set<DetectionKind> = requiresFaces ? [.faces] : []
        if sizing.isCutByGravity, case .detected(let wanted) = sizing.gravity { kinds.insert(wanted.kind) }
        return kinds
    }

    /// True if the variant cannot be rendered unless faces have been looked for.
    public var requiresFaces: Bool { findings.contains(.faces) || allProcessors.contains(where: \.hidesFaces) }

    /// All processing steps in their order.
    public var allProcessors: [Processor] { before + processors }

    /// The reason for which the output cannot have its ``OutputOptions/bitDepth``; nil if it can.
    public var bitDepthConflict: String? {
        guard let bits = output.bitDepth else { return nil }
        let formats = OutputOptions.formats(ofBitDepth: bits)
        guard let format = output.format, formats.contains(format) else {
            return "\(bits) bits require the format \(formats.map(\.rawValue).joined(separator: " or "))"
        }
        let conflicts = [
            ("before", !before.isEmpty), ("processors", !processors.isEmpty), ("linearLight", linearLight),
            ("quantize", output.quantization != nil), ("a target for quality", output.similarity != nil),
            ("maximumBytes", output.maximumBytes != nil && format == .png),
        ]
        return conflicts.first(where: \.1).map { "\(bits) bits cannot be combined with \($0.0)" }
    }

    /// The additional pictures that the processors require, without duplicates.
    public var assets: [Source] {
        var assets: [Source] = []
        for asset in allProcessors.compactMap(\.asset) where !assets.contains(asset) { assets.append(asset) }
        return assets
    }
}

/// An analysis of an output that is reported in the event.
public enum AnalysisKind: String, CaseIterable, Codable, Sendable {
    /// The BlurHash (https://blurha.sh), a placeholder to show while the image loads.
    case blurhash
    /// The dominant color.
    case dominantColor
    /// The most important colors.
    case palette
    /// The ThumbHash (https://evanw.github.io/thumbhash/), a placeholder with alpha and the aspect ratio.
    case thumbhash
    /// The perceptual hash (pHash). Similar pictures have hashes that differ in few bits.
    case phash
    /// The places of faces in the result, or in the source for facts.
    case faces
}

/// The facts about a source that a job requests instead of an image.
public struct InfoOptions: Hashable, Codable, Sendable {
    /// True if the facts include the location where the picture was taken.
    public var location: Bool

    /// Creates options.
    public init(location: Bool = false) { self.location = location }
}

/// The interpolation qualities, with the names of Core Graphics.
public enum InterpolationQuality: String, CaseIterable, Codable, Sendable {
    /// Nearest neighbor.
    case none
    /// Linear.
    case low
    /// Cubic.
    case medium
    /// Lanczos3, with at least a factor of two left for it after shrink on load.
    case high
    /// Lanczos3, after the largest possible shrink on load.
    case `default`
}
