import HalcyonModel
import Vips

/// Which codecs this process keeps apart from itself.
enum Codecs {
    /// Whether one of them reads or writes what is ordered. What they read is not even opened here: libraries that parse
    /// documents (SVG, PDF), and those that do not look up before they are done with a picture, however small (HEIF,
    /// JPEG XL).
    ///
    /// - Parameter format: the source's.
    static func areApart(_ order: Turn.Order, of format: Format) -> Bool {
        order.variants.contains { $0.output.format == .avif || $0.output.format == .jxl }
            || isApart(format)
            || order.assets.values.contains { file in
                // What is of no known format is refused without work.
                (try? EncodedImage(file).format).map(isApart) ?? false
            }
    }

    /// Whether what reads the format is one of them.
    static func isApart(_ format: Format) -> Bool {
        switch format {
        case .heif, .jxl, .svg, .pdf: true
        case .jpeg, .png, .webp, .gif, .tiff: false
        }
    }
}
