import HalcyonModel
import Vips

/// Step 8, encode: the saver of libvips and its options.
struct Encoder {
    private let format: Format
    private let options: [String: Value]

    /// Where the job says nothing: quality 80 (AVIF 50, about as good), AVIF at effort 2, four times faster than
    /// libaom's own choice. nil for a format that is not written.
    init?(_ format: ImageFormat, _ output: OutputOptions) {
        var options: [String: Value] = [:]
        switch format {
        case .jpeg:
            self.format = .jpeg
            options["Q"] = .int(output.quality ?? 80)
            options["interlace"] = .bool(output.progressive)
        case .png:
            self.format = .png
            // All filters, and zlib a little faster: the time of libvips' defaults, photographs 10–35 % smaller.
            options["filter"] = .int(0xf8)
            options["compression"] = .int(output.effort ?? 4)
            options["interlace"] = .bool(output.progressive)
        case .webp:
            self.format = .webp
            options["Q"] = .int(output.quality ?? 80)
            options["lossless"] = .bool(output.lossless)
            // libwebp counts effort from 0 to 6.
            options["effort"] = .int(((output.effort ?? 6) * 6 + 4) / 9)
        case .avif:
            self.format = .heif
            options["compression"] = "av1"
            options["Q"] = .int(output.quality ?? 50)
            options["lossless"] = .bool(output.lossless)
            options["effort"] = .int(output.effort ?? 2)
        case .gif, .tiff, .jxl, .heic, .svg, .pdf:
            return nil
        }
        self.options = options
    }

    /// The file, without metadata.
    func encode(_ image: Image, _ cancellation: Cancellation?) throws(VipsError) -> [UInt8] {
        try image.encoded(as: format, options, keeping: [], cancellation)
    }
}
