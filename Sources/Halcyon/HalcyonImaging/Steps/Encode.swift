import HalcyonModel
import Vips

/// Step 12, encode: the saver of libvips and its options.
struct Encoder {
    private let format: Format
    private let options: Operation.Arguments
    private let kept: MetadataKept

    /// Where the job says nothing, each format has the quality that looks about as good as JPEG's 80, and an effort chosen
    /// for throughput. nil for a format that the libraries installed here do not write.
    init?(_ format: ImageFormat, _ output: OutputOptions) {
        var options: Operation.Arguments = [:]
        /// The job's effort of 0 to 9 on an encoder's own scale.
        func effort(_ range: ClosedRange<Int>, standard: Int) -> Value {
            guard let effort = output.effort else { return .int(standard) }
            return .int(range.lowerBound + (effort * (range.count - 1) + 4) / 9)
        }
        switch format {
        case .jpeg:
            self.format = .jpeg
            options["Q"] = .int(output.quality ?? 80)
            options["interlace"] = .bool(output.progressive)
        case .png:
            self.format = .png
            // All filters, and zlib a little faster: the time of libvips' defaults, photographs 10–35 % smaller.
            options["filter"] = .int(0xf8)
            options["compression"] = effort(0...9, standard: 4)
            options["interlace"] = .bool(output.progressive)
        case .webp:
            self.format = .webp
            options["Q"] = .int(output.quality ?? 80)
            options["lossless"] = .bool(output.lossless)
            options["effort"] = effort(0...6, standard: 4)
        case .avif:
            self.format = .heif
            options["compression"] = "av1"
            options["Q"] = .int(output.quality ?? 50)
            options["lossless"] = .bool(output.lossless)
            // Four times faster than libaom's own choice.
            options["effort"] = effort(0...9, standard: 2)
        case .gif:
            self.format = .gif
            options["effort"] = effort(1...10, standard: 3)
        case .tiff:
            self.format = .tiff
            options["compression"] = "deflate"
            options["predictor"] = "horizontal"
        case .jxl:
            self.format = .jxl
            if output.lossless { options["lossless"] = true } else { options["Q"] = .int(output.quality ?? 75) }
            options["effort"] = effort(3...9, standard: 3)
        case .heic, .svg, .pdf:
            return nil
        }
        guard self.format.canSave else { return nil }
        self.options = options
        let metadata: MetadataKept = output.stripMetadata ? [] : [.exif, .xmp, .iptc]
        kept = metadata.union(output.keepProfile ? .icc : [])
    }

    /// The file, with the metadata that the job keeps.
    func encode(_ image: Image, _ cancellation: Cancellation?) throws(VipsError) -> [UInt8] {
        try image.encoded(as: format, options, keeping: kept, cancellation)
    }
}
