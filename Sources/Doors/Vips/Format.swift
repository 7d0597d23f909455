/// The file formats that may be loaded, and can be saved: those whose libraries are fuzzed against hostile input.
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
    /// SVG, through librsvg.
    case svg
    /// PDF, through poppler or pdfium.
    case pdf
    /// JPEG XL, through libjxl.
    case jxl
    /// The HEIF container with AVIF or HEIC inside, through libheif.
    case heif

    /// The operation that decodes it from memory.
    var loader: String { "\(rawValue)load_buffer" }

    /// The operation that encodes it to memory.
    var saver: String { "\(rawValue)save_buffer" }

    /// The class above all loaders of the format.
    var loaderClass: String {
        switch self {
        case .gif: "VipsForeignLoadNsgif"
        default: "VipsForeignLoad\(rawValue.prefix(1).uppercased())\(rawValue.dropFirst())"
        }
    }

    /// Whether this build of libvips can decode it.
    public var canLoad: Bool { VipsLibrary.has(operation: loader) }

    /// Whether this build of libvips can encode it.
    public var canSave: Bool { VipsLibrary.has(operation: saver) }
}
