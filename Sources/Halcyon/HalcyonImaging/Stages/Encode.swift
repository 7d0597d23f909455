import HalcyonModel
import Vips

/// Step 12, encode: the saver of libvips and its options.
struct Encoder {
    private let format: Format
    private let options: Operation.Arguments
    let kept: MetadataPolicy

    /// Creates the encoder of a format, or nil if the installed libraries cannot write it. By default each format has
    /// the quality that looks about as good as JPEG's 80, and an effort chosen for throughput, usually the last step
    /// that costs less than it saves. The figures in the comments are from the benchmark (`RenderBenchmark FOLDER
    /// encoders`), for photographs of 800×600 with libvips 8.14.
    init?(_ format: ImageFormat, _ output: OutputOptions) {
        var options: Operation.Arguments = [:]
        /// Maps the job's effort of 0 to 9 to the scale of an encoder.
        func effort(_ range: ClosedRange<Int>, standard: Int) -> Value {
            guard let effort = output.effort else { return .int(standard) }
            return .int(range.lowerBound + (effort * (range.count - 1) + 4) / 9)
        }
        switch format {
        case .jpeg:
            self.format = .jpeg
            // 4.5 ms. Optimized coding takes twice as long and saves 0.7 % of the bytes; libjpeg-turbo has no trellis
            // quantization.
            options["Q"] = .int(output.quality ?? 80)
            options["interlace"] = .bool(output.progressive)
        case .png:
            self.format = .png
            // All filters: photographs are 5–35 % smaller than with any single one. Level 3 takes two thirds of the
            // time, but text and drawings, for which PNG is used, become 25 to 100 % larger. Level 6 takes twice the
            // time and saves 2 %.
            options["filter"] = .int(0xf8)
            options["compression"] = effort(0...9, standard: 4)
            options["interlace"] = .bool(output.progressive)
        case .webp:
            self.format = .webp
            options["Q"] = .int(output.quality ?? 80)
            options["lossless"] = .bool(output.lossless)
            // 34 ms. Effort 4, libwebp's default, takes 64 ms and saves 3.5 % of the bytes at equal similarity.
            options["effort"] = effort(0...6, standard: 2)
        case .avif:
            self.format = .heif
            options["compression"] = "av1"
            options["Q"] = .int(output.quality ?? 50)
            options["lossless"] = .bool(output.lossless)
            // 270 ms. Effort 0 takes a sixth of the time, but needs 38 % more bytes for the same similarity, as much as
            // WebP. Effort 4, libvips' default, takes 6.5 times as long.
            options["effort"] = effort(0...9, standard: 2)
        case .gif:
            self.format = .gif
            // Up to effort 3 the size is the same. Effort 7 takes three times as long and saves 6 %.
            options["effort"] = effort(1...10, standard: 1)
        case .tiff:
            self.format = .tiff
            options["compression"] = "deflate"
            options["predictor"] = "horizontal"
        case .jxl:
            self.format = .jxl
            if output.lossless { options["lossless"] = true } else { options["Q"] = .int(output.quality ?? 75) }
            // 32 ms. Effort 5 takes four times as long and saves 9 % of the bytes.
            options["effort"] = effort(3...9, standard: 3)
        case .heic, .svg, .pdf, .json:
            return nil
        }
        guard self.format.canSave else { return nil }
        self.options = options
        let metadata: MetadataPolicy = output.stripMetadata ? [] : [.exif, .xmp, .iptc]
        kept = metadata.union(output.keepProfile ? .icc : [])
    }

    /// Encodes an image with the metadata that the job retains.
    func encode(_ image: Image, _ cancellation: Cancellation?) throws(VipsError) -> [UInt8] {
        try image.encoded(as: format, options, keeping: kept, cancellation)
    }
}

extension OutputPlan {
    /// Returns the source file without its metadata if the job requests neither other pixels nor another encoding,
    /// otherwise nil. Encoding it again would cost a JPEG, WebP or AVIF a generation, and a GIF colors. Other formats
    /// are always encoded: PNG and TIFF lose nothing by it, and JPEG XL is not rewritten.
    func ownFile(of source: SourceImage) -> [UInt8]? {
        let whole = PixelRect(source.size)
        guard [.jpeg, .webp, .gif, .avif].contains(format), source.format == format, frames == source.frames,
            !source.isTruncated, source.orientation == .upright,
            geometry == SizingPlan(scaling: source.size, to: source.size), part == whole, variant.allProcessors.isEmpty,
            !canBeTransparent(source) || variant.background.alpha == 0,
            asksForNoCoding, keepsColours(of: source.header)
        else { return nil }
        return source.file.withoutMetadata(of: source.header, keepingProfile: variant.output.keepProfile)
    }

    /// The frames of a GIF may leave parts of the canvas empty, even if none has a transparent color.
    private func canBeTransparent(_ source: SourceImage) -> Bool { source.header.hasAlpha || format == .gif }

    private var asksForNoCoding: Bool {
        let output = variant.output
        return output.quality == nil && output.effort == nil && !output.lossless && !output.progressive
            && output.stripMetadata
    }

    private func keepsColours(of header: Image) -> Bool {
        guard header.interpretation == .sRGB || header.interpretation == .grey else { return false }
        return variant.output.keepProfile || header.bytes(of: "icc-profile-data").map { ICCProfile($0).isSRGB } ?? true
    }
}
