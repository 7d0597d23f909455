import HalcyonModel
import Vips

/// Step 12, encode: the saver of libvips and its options.
struct Encoder {
    /// A setting of an encoder on which the size of the file depends.
    enum Level: Hashable {
        /// The quality of a lossy format, 1 to 100.
        case quality(Int)
        /// The colors of a palette; nil for as many as the picture has.
        case colors(Int?)
    }

    /// The format of the file.
    let output: ImageFormat
    private let format: Format
    private let options: Operation.Arguments
    let kept: MetadataPolicy
    /// The level that the job requests, or the default.
    let standard: Level
    /// True if the file has exactly the pixels of the picture at the level ``standard``.
    let isLossless: Bool
    private let hasPalette: Bool
    private let dither: Double

    /// Creates the encoder of a format, or nil if the installed libraries cannot write it. By default each format has
    /// the quality that looks about as good as JPEG's 80, and an effort chosen for throughput, usually the last step
    /// that costs less than it saves. The figures in the comments are from the benchmark (`RenderBenchmark FOLDER
    /// encoders`), for photographs of 800×600 with libvips 8.14.
    init?(_ format: ImageFormat, _ output: OutputOptions) {
        var options: Operation.Arguments = [:]
        var quality: Int?
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
            quality = output.quality ?? 80
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
            // For near-lossless coding, the quality is the strength of the preprocessing. 60 is the default of cwebp.
            quality = output.nearLossless ? output.quality ?? 60 : output.lossless ? nil : output.quality ?? 80
            options["lossless"] = .bool(output.lossless || output.nearLossless)
            options["near-lossless"] = .bool(output.nearLossless)
            // 34 ms. Effort 4, libwebp's default, takes 64 ms and saves 3.5 % of the bytes at equal similarity.
            options["effort"] = effort(0...6, standard: 2)
        case .avif:
            self.format = .heif
            options["compression"] = "av1"
            quality = output.lossless ? nil : output.quality ?? 50
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
            quality = output.lossless ? nil : output.quality ?? 75
            if output.lossless { options["lossless"] = true }
            // 32 ms. Effort 5 takes four times as long and saves 9 % of the bytes.
            options["effort"] = effort(3...9, standard: 3)
        case .heic, .svg, .pdf, .jp2, .bmp, .ico, .json:
            return nil
        }
        guard self.format.canSave else { return nil }
        if let bits = output.bitDepth {
            guard OutputOptions.formats(ofBitDepth: bits).contains(format) else { return nil }
            if format == .png || format == .avif { options["bitdepth"] = .int(bits) }
        }
        if let sampling = output.chromaSubsampling, [.jpeg, .avif].contains(format) {
            options["subsample-mode"] = sampling == .full ? "off" : "on"
        } else if format == .avif, output.lossless {
            // By default libvips halves the resolution of colors in lossless files too.
            options["subsample-mode"] = "off"
        }
        self.output = format
        self.options = options
        hasPalette = format == .png || format == .gif
        let colors = hasPalette ? output.quantization?.colors ?? (format == .gif ? 256 : nil) : nil
        standard = quality.map(Level.quality) ?? .colors(colors)
        isLossless = quality == nil && colors == nil
        dither = output.quantization?.dither ?? 1
        let metadata: MetadataPolicy = output.stripMetadata ? [] : [.exif, .xmp, .iptc]
        kept = metadata.union(output.keepProfile || output.profile != nil ? .icc : [])
    }

    /// Encodes an image with the metadata that the job retains.
    func encode(_ image: Image, at level: Level? = nil, _ cancellation: Cancellation?) throws(VipsError) -> [UInt8] {
        var options = options
        switch level ?? standard {
        case .quality(let quality): options["Q"] = .int(quality)
        case .colors(nil): break
        case .colors(let colors?):
            options["bitdepth"] = .int(colors.trailingZeroBitCount)
            options["dither"] = .double(dither)
            if output == .png {
                options["palette"] = true
                // Filters make indices of a palette larger.
                options["filter"] = .int(0x08)
            }
        }
        return try image.encoded(as: format, options, keeping: kept, cancellation)
    }

    /// Returns the levels of a search for a number of bytes, from that of the largest file to that of the smallest: the
    /// qualities down to an eighth of the first, or numbers of colors down to 2. If the picture may shrink instead,
    /// down to half of the quality, or to 256 colors.
    func levels(from first: Level, shrinking: Bool) -> [Level] {
        switch first {
        case .quality(let quality): (max(1, quality / (shrinking ? 2 : 8))...quality).reversed().map(Level.quality)
        case .colors(let colors):
            [first]
                + (hasPalette ? Quantization.sizes.reversed() : []).filter {
                    $0 < colors ?? .max && (!shrinking || $0 == Quantization.sizes.max())
                }.map(Level.colors)
        }
    }

    /// True if this process can decode the file, which measuring its similarity requires.
    var canDecode: Bool { VipsLibrary.allowed.contains(format) && format.canLoad }
}

/// An encoded output.
struct EncodedOutput {
    let body: [UInt8]
    let format: ImageFormat
    let size: PixelSize
    /// The outcome of the search; nil without one.
    var choice: EncodingChoice?

    /// Returns the number of frames in the file; nil for a still image. Encoders join frames that are equal, or almost
    /// equal, to one that is shown for longer.
    /// - Parameter planned: The number of frames that were encoded.
    func frames(of planned: Int) -> Int? {
        guard planned > 1 else { return nil }
        // The frames of a format that may not be read here, or whose decoder stops counting, are those of the plan.
        guard planned <= format.countableFrames, let file = try? EncodedImage(body).open() else { return planned }
        return file.pages > 1 ? file.pages : nil
    }
}

/// The encoding of one output: a single one, or the search for its quality, its format and its number of bytes.
struct OutputEncoding {
    let plan: OutputPlan
    let decoded: DecodedImage
    let limits: ImageLimits
    let cancellation: Cancellation?
    private var encodings = 0

    /// A file that the search has encoded.
    private struct Attempt {
        let body: [UInt8]
        let encoder: Encoder
        let level: Encoder.Level
        let size: PixelSize
        var similarity: Double?
    }

    init(_ plan: OutputPlan, _ decoded: DecodedImage, _ limits: ImageLimits, _ cancellation: Cancellation?) {
        self.plan = plan
        self.decoded = decoded
        self.limits = limits
        self.cancellation = cancellation
    }

    /// Encodes the frames of the output.
    ///
    /// - Throws: `tooLarge` if no file of the search has at most the requested number of bytes; `unsupportedFormat` if
    ///   a similarity cannot be measured here; ``VipsError``.
    mutating func run(_ frames: [Image]) throws -> EncodedOutput {
        let image = try decoded.animation(of: frames)
        let options = plan.variant.output
        guard options.isSearched else {
            return EncodedOutput(
                body: try plan.encoder.encode(image, cancellation), format: plan.format, size: frames[0].size)
        }
        var found: Attempt
        if options.targetSimilarity != nil || options.choosesFormat {
            found = try best(image, frames[0].size, options.targetSimilarity)
        } else {
            found = try attempt(image, plan.encoder, plan.encoder.standard, frames[0].size)
        }
        if let limit = options.maximumBytes, found.body.count > limit {
            found = try smaller(found, image, frames, within: limit, shrinking: options.allowsResizing)
        }
        var choice = EncodingChoice(similarity: found.similarity, encodings: encodings)
        switch found.level {
        case .quality(let quality): choice.quality = quality
        case .colors(let colors): choice.colors = colors
        }
        return EncodedOutput(body: found.body, format: found.encoder.output, size: found.size, choice: choice)
    }

    private mutating func attempt(
        _ image: Image, _ encoder: Encoder, _ level: Encoder.Level, _ size: PixelSize
    ) throws(VipsError) -> Attempt {
        encodings += 1
        return Attempt(
            body: try encoder.encode(image, at: level, cancellation), encoder: encoder, level: level, size: size)
    }

    /// Returns the smallest file of the candidates that reach the similarity. If none does, the most similar one.
    private mutating func best(_ image: Image, _ size: PixelSize, _ target: Double?) throws -> Attempt {
        let encoders = plan.candidates.filter {
            plan.candidates.count == 1 || max(size.width, size.height) <= $0.output.greatestSide
        }
        let measure = try target.map { _ in try Similarity(to: image, cancellation) }
        var best: Attempt?
        for encoder in encoders {
            let found: Attempt
            if let target, let measure, !encoder.isLossless {
                found = try search(for: target, measure, image, encoder, size)
            } else {
                found = try attempt(image, encoder, encoder.standard, size)
            }
            guard let other = best else {
                best = found
                continue
            }
            let (new, old) = (found.similarity ?? 1, other.similarity ?? 1)
            let isBetter =
                switch target.map({ (new >= $0, old >= $0) }) ?? (true, true) {
                case (true, true): found.body.count < other.body.count
                case (false, false): new > old
                case (let reaches, _): reaches
                }
            if isBetter { best = found }
        }
        guard let best else {
            throw JobError(
                .unsupportedFormat, "no format of best can be written for \(size.width)×\(size.height) pixels")
        }
        return best
    }

    /// Searches for the lowest quality that reaches the similarity, by bisection, with the default quality as the first
    /// step. If none does, the most similar file is returned.
    private mutating func search(
        for target: Double, _ measure: Similarity, _ image: Image, _ encoder: Encoder, _ size: PixelSize
    ) throws -> Attempt {
        guard encoder.canDecode else {
            throw JobError(
                .unsupportedFormat,
                "the similarity of \(encoder.output.rawValue) cannot be measured, because it cannot be decoded here")
        }
        func measured(_ level: Encoder.Level) throws -> Attempt {
            var found = try attempt(image, encoder, level, size)
            found.similarity = try measure.similarity(ofFile: found.body, cancellation)
            return found
        }
        guard case .quality(var next) = encoder.standard else { return try measured(encoder.standard) }
        var (low, high) = (0, 101)
        var (sufficient, closest): (Attempt?, Attempt?)
        for _ in 0..<limits.encodings where high - low > 1 {
            let found = try measured(.quality(next))
            if found.similarity ?? 0 >= target {
                (sufficient, high) = (found, next)
            } else {
                if closest?.similarity ?? -1 < found.similarity ?? 0 { closest = found }
                low = next
            }
            next = (low + high) / 2
        }
        guard let found = sufficient ?? closest else { return try measured(encoder.standard) }
        return found
    }

    /// Searches for the largest file of at most `limit` bytes: first by its level, then by its size in pixels.
    private mutating func smaller(
        _ first: Attempt, _ image: Image, _ frames: [Image], within limit: Int, shrinking: Bool
    ) throws -> Attempt {
        let (encoder, end) = (first.encoder, encodings + limits.encodings - 1)
        let levels = encoder.levels(from: first.level, shrinking: shrinking)
        var smallest = first
        if levels.count > 1, encodings < end {
            smallest = try attempt(image, encoder, levels[levels.count - 1], first.size)
            var (tooLarge, fitting) = (0, levels.count - 1)
            var found = smallest
            while found.body.count <= limit, encodings < end, fitting - tooLarge > 1 {
                let middle = (tooLarge + fitting) / 2
                let next = try attempt(image, encoder, levels[middle], first.size)
                if next.body.count <= limit { (found, fitting) = (next, middle) } else { tooLarge = middle }
            }
            if found.body.count <= limit { return found }
        }
        if shrinking {
            var (scale, tooLarge) = (1.0, 1.0)
            let least = 1 / Double(min(first.size.width, first.size.height))
            var found: Attempt?
            var fitting = least
            while encodings < end, tooLarge - fitting > 0.02 {
                if found == nil {
                    let ratio = (Double(limit) / Double(smallest.body.count)).squareRoot()
                    scale = max(least, scale * min(ratio, 0.95) * 0.98)
                } else {
                    scale = (fitting + tooLarge) / 2
                }
                let small = try frames.map { frame in
                    try frame.scaled(scale, scale, plan.variant.interpolationQuality).inMemory(cancellation)
                }
                let next = try attempt(try decoded.animation(of: small), encoder, smallest.level, small[0].size)
                if next.body.count <= limit {
                    (found, fitting) = (next, scale)
                } else {
                    tooLarge = scale
                    if next.body.count < smallest.body.count { smallest = next }
                    if scale == least { break }
                }
            }
            if let found { return found }
        }
        let size = "\(smallest.size.width)×\(smallest.size.height)"
        let hint = shrinking ? "" : " or set allowResize"
        throw JobError(
            .tooLarge,
            "the smallest \(encoder.output.rawValue) in \(encodings) encodings has \(smallest.body.count) bytes "
                + "(\(size), \(smallest.level)); maximumBytes is \(limit). Increase it\(hint)")
    }
}

extension Encoder.Level: CustomStringConvertible {
    var description: String {
        switch self {
        case .quality(let quality): "quality \(quality)"
        case .colors(let colors?): "\(colors) colors"
        case .colors(nil): "lossless"
        }
    }
}

extension OutputPlan {
    /// Returns the source file without its metadata if the job requests neither other pixels nor another encoding,
    /// otherwise nil. Encoding it again would cost a JPEG, WebP or AVIF a generation, a GIF colors, and a PNG its
    /// palette, without which it is up to three times as large. Other formats are always encoded: TIFF and PNG without
    /// a palette lose nothing by it, and JPEG XL is not rewritten.
    func ownFile(of source: SourceImage) -> [UInt8]? {
        let whole = PixelRect(source.size)
        guard [.jpeg, .webp, .gif, .avif, .png].contains(format), source.format == format, frames == source.frames,
            source.page == 1, !source.isTruncated, !source.isCopy, source.orientation == .upright,
            geometry == SizingPlan(scaling: source.size, to: source.size), part == whole, variant.allProcessors.isEmpty,
            !canBeTransparent(source) || variant.background.alpha == 0,
            asksForNoCoding, keepsColours(of: source.header)
        else { return nil }
        let file = source.file.withoutMetadata(of: source.header, keepingProfile: variant.output.keepProfile)
        return file.flatMap { $0.count <= variant.output.maximumBytes ?? .max ? $0 : nil }
    }

    /// The frames of a GIF may leave parts of the canvas empty, even if none has a transparent color.
    private func canBeTransparent(_ source: SourceImage) -> Bool { source.header.hasAlpha || format == .gif }

    private var asksForNoCoding: Bool {
        let output = variant.output
        return output.quality == nil && output.effort == nil && !output.lossless && !output.progressive
            && output.stripMetadata && !output.nearLossless && !output.choosesFormat && output.similarity == nil
            && output.quantization == nil && output.chromaSubsampling == nil && output.profile == nil
            && output.bitDepth == nil
    }

    private func keepsColours(of header: Image) -> Bool {
        guard header.interpretation == .sRGB || header.interpretation == .grey else { return false }
        return variant.output.keepProfile || header.bytes(of: "icc-profile-data").map { ICCProfile($0).isSRGB } ?? true
    }
}
