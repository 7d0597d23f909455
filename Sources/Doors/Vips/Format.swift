/// The file formats that may be loaded, and can be saved.
///
/// libvips takes SVG, PDF and JPEG XL for untrusted: their libraries have not been fuzzed by it against hostile input.
/// Close them with ``VipsLibrary/allow(_:)`` where they are not wanted.
public enum Format: String, Sendable, CaseIterable {
    /// JPEG, through libjpeg-turbo.
    case jpeg
    /// PNG, through libspng or libpng.
    case png
    /// WebP, still or animated, through libwebp.
    case webp
    /// GIF, through libnsgif; saved by cgif.
    case gif
    /// TIFF, through libtiff.
    case tiff
    /// The HEIF container with AVIF or HEIC inside, through libheif; see ``HEIFCodec``.
    case heif
    /// JPEG XL, through libjxl.
    case jxl
    /// SVG, compressed by gzip or not, through librsvg. It is drawn at the size that `scale` and `dpi` say; it cannot
    /// be saved.
    case svg
    /// PDF, through poppler or PDFium, a page at the size that `scale` and `dpi` say; it cannot be saved.
    case pdf

    /// The operation that decodes it from memory.
    var loader: String { "\(rawValue)load_buffer" }

    /// The operation that encodes it to memory; nil where there cannot be one.
    var saver: String? {
        switch self {
        case .svg, .pdf: nil
        default: "\(rawValue)save_buffer"
        }
    }

    /// The class above all loaders of the format.
    var loaderClass: String {
        switch self {
        case .gif: "VipsForeignLoadNsgif"
        default: "VipsForeignLoad\(capitalised)"
        }
    }

    /// The class above all savers of the format; nil where there cannot be one.
    var saverClass: String? {
        switch self {
        case .svg, .pdf: nil
        case .gif: "VipsForeignSaveCgif"
        default: "VipsForeignSave\(capitalised)"
        }
    }

    private var capitalised: String { "\(rawValue.prefix(1).uppercased())\(rawValue.dropFirst())" }

    /// Whether this build of libvips can decode it. For HEIF, whether libheif has a decoder for AV1 or HEVC: the first
    /// call decodes a tiny picture of each.
    public var canLoad: Bool {
        guard self != .heif else { return HEIFCodec.allCases.contains(where: \.canDecode) }
        return VipsLibrary.has(operation: loader)
    }

    /// Whether this build of libvips can encode it. For HEIF, whether libheif has an encoder for AV1: the first call
    /// encodes a tiny picture.
    public var canSave: Bool {
        guard self != .heif else { return HEIFCodec.encodesAV1 }
        return saver.map(VipsLibrary.has(operation:)) ?? false
    }
}
