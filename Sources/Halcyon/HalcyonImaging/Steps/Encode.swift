import HalcyonModel
import Vips

/// Step 12, encode: the saver of libvips and its options.
struct Encoder {
    private let format: Format
    private let options: Operation.Arguments
    let kept: MetadataKept

    /// Where the job says nothing, each format has the quality that looks about as good as JPEG's 80, and an effort chosen
    /// for throughput: as a rule the last step that costs less than it saves. The figures beside them are the benchmark's
    /// (`RenderBenchmark FOLDER encoders`): photographs of 800×600, libvips 8.14. nil for a format that the libraries
    /// installed here do not write.
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
            // 4.5 ms. Optimised coding takes twice that for 0.7 % of the bytes; libjpeg-turbo has no trellis.
            options["Q"] = .int(output.quality ?? 80)
            options["interlace"] = .bool(output.progressive)
        case .png:
            self.format = .png
            // All filters: photographs 5–35 % smaller than with any one. Level 3 takes two thirds of the time, but text and
            // drawings, which PNG is for, become a quarter to twice as large; level 6 takes twice the time for 2 %.
            options["filter"] = .int(0xf8)
            options["compression"] = effort(0...9, standard: 4)
            options["interlace"] = .bool(output.progressive)
        case .webp:
            self.format = .webp
            options["Q"] = .int(output.quality ?? 80)
            options["lossless"] = .bool(output.lossless)
            // 34 ms; 4, which is libwebp's own, takes 64 ms for 3.5 % of the bytes. They are equally like the source.
            options["effort"] = effort(0...6, standard: 2)
        case .avif:
            self.format = .heif
            options["compression"] = "av1"
            options["Q"] = .int(output.quality ?? 50)
            options["lossless"] = .bool(output.lossless)
            // 270 ms. 0 takes a sixth, but 38 % more bytes for the same likeness, which is WebP's size; 4, which is
            // libvips' own, takes 6.5 times as long.
            options["effort"] = effort(0...9, standard: 2)
        case .gif:
            self.format = .gif
            // Up to 3 the bytes are the same; 7 takes three times as long for 6 % of them.
            options["effort"] = effort(1...10, standard: 1)
        case .tiff:
            self.format = .tiff
            options["compression"] = "deflate"
            options["predictor"] = "horizontal"
        case .jxl:
            self.format = .jxl
            if output.lossless { options["lossless"] = true } else { options["Q"] = .int(output.quality ?? 75) }
            // 32 ms; 5 takes four times that for 9 % of the bytes.
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

extension OutputPlan {
    /// The source's own file without its metadata, where the job asks for no other pixels and no other coding: encoded again a
    /// JPEG, WebP or AVIF would lose a generation, and a GIF colors. nil where it is to be encoded. Other formats
    /// always are: PNG and TIFF lose nothing by it, and JPEG XL is not rewritten.
    func ownFile(of source: SourceImage) -> [UInt8]? {
        let whole = PixelRect(source.size)
        guard [.jpeg, .webp, .gif, .avif].contains(format), source.format == format, frames == source.frames,
            !source.isTruncated, source.orientation == .upright,
            geometry == SizingPlan(scaling: source.size, to: source.size), part == whole, variant.processors.isEmpty,
            !canBeTransparent(source) || variant.background.alpha == 0,
            asksForNoCoding, keepsColours(of: source.header)
        else { return nil }
        return source.file.withoutMetadata(of: source.header, keepingProfile: variant.output.keepProfile)
    }

    /// The frames of a GIF may leave a part of the canvas open, though none has a transparent color.
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
