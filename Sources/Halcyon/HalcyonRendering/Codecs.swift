import HalcyonModel
import Vips

/// Which codecs this process keeps apart from itself.
enum Codecs {
    /// Whether one of them reads or writes what is ordered. What they read is not even opened here: libraries that parse
    /// documents (SVG, PDF), and those that do not look up before they are done with a picture, however small (HEIF,
    /// JPEG XL).
    static func areApart(_ order: Turn.Order) -> Bool {
        order.variants.contains { $0.output.format == .avif || $0.output.format == .jxl }
            || isApart(order.source) || order.assets.values.contains(where: isApart)
    }

    private static func isApart(_ bytes: [UInt8]) -> Bool {
        // What is of no known format is refused without work.
        guard let format = try? EncodedImage(bytes).format else { return false }
        return switch format {
        case .heif, .jxl, .svg, .pdf: true
        case .jpeg, .png, .webp, .gif, .tiff: false
        }
    }
}
