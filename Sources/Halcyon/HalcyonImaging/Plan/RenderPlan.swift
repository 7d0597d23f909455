import HalcyonModel
import Vips

/// The plan of a rendering, based on headers alone. Nothing has been rendered yet.
///
/// Confined to the thread that created it, as are its images.
public struct RenderPlan {
    /// The source, at its first page.
    let source: SourceImage
    let outputs: [OutputPlan]
    /// The source of each output, at its page.
    let sources: [SourceImage]
    /// The decodings in their order, each with the indices of the outputs that share it.
    let decodings: [(load: LoadPlan, outputs: [Int])]

    /// The estimated CPU time for which the rendering may continue after it was cancelled. Some codecs do not check for
    /// cancellation before a whole image is done.
    public let unstoppable: Duration

    /// The estimated maximum memory in bytes, for decoding, the pixels of the outputs, the images that processors use,
    /// and encoders.
    public let memory: Int

    /// True if it decodes more than one frame.
    public var isAnimated: Bool { decodings.contains { $0.load.frames > 1 } }

    /// Creates a plan.
    /// - Parameter assets: The bytes of ``Variant/assets``. Those that are missing are not counted.
    /// - Throws: ``JobError`` if a file is not an image, an output is not possible, or a limit is exceeded.
    init(
        _ file: EncodedImage, _ variants: [Variant], assets: [Source: [UInt8]] = [:],
        original: ArchivedOriginal? = nil, archive: ArchiveOptions? = nil, within limits: ImageLimits,
        _ extensions: Extensions
    ) throws(JobError) {
        // A variant that does not tolerate truncation fails the others.
        let toleratesCut = variants.allSatisfy {
            !$0.needsPixels || ($0.tolerance ?? limits.tolerance) == .truncated
        }
        let firstPage = try SourceImage(file, toleratingCut: toleratesCut, original: original)
        source = firstPage
        let variants = archive.map { [$0.variant(for: firstPage)].compactMap(\.self) } ?? variants
        var pages = [1: firstPage]
        var sources: [SourceImage] = []
        var outputs: [OutputPlan] = []
        var sizes: [OutputSizes] = []
        var assetCosts = AssetCosts()
        var longest = 0.0
        for (index, variant) in variants.enumerated() {
            do throws(JobError) {
                let source: SourceImage
                if let known = pages[variant.page] {
                    source = known
                } else {
                    source = try SourceImage(firstPage, page: variant.page)
                    pages[variant.page] = source
                }
                sources.append(source)
                if variant.needsPixels { longest = max(longest, source.unstoppableMilliseconds) }
                let output = try OutputPlan(variant, of: source, extensions)
                let canvas = output.geometry.outputSize
                sizes.append(
                    variant.needsPixels
                        ? try limits.admit(output, extensions) : OutputSizes(last: canvas, largest: canvas))
                if variant.needsPixels { try assetCosts.add(output, assets, within: limits, extensions) }
                if variant.info == nil {
                    longest = max(longest, output.unstoppableMilliseconds(for: sizes[index].last))
                }
                outputs.append(output)
            } catch {
                throw error.forVariant(index)
            }
        }
        var shared: [(source: SourceImage, reduction: LoadPlan.Reduction, outputs: [Int])] = []
        for (index, output) in outputs.enumerated() where output.variant.needsPixels {
            let source = sources[index]
            let reduction = LoadPlan.Reduction(for: output, of: source)
            if let place = shared.firstIndex(where: { $0.source.page == source.page && $0.reduction == reduction }) {
                shared[place].outputs.append(index)
            } else {
                shared.append((source, reduction, [index]))
            }
        }
        var decodings: [(load: LoadPlan, outputs: [Int])] = []
        for (source, reduction, indices) in shared {
            let load = LoadPlan(reduction, indices.map { outputs[$0] }, indices.map { sizes[$0] }, of: source)
            try limits.admit(source, load)
            decodings.append((load, indices))
        }
        let encoding = outputs.indices.map { outputs[$0].encoderBytes(for: sizes[$0].last) }.max() ?? 0
        // Images of processors are decoded, and their decoders end, before the output is encoded.
        memory =
            (decodings.map(\.load.estimatedBytes).max() ?? 0) + assetCosts.retainedBytes
            + max(encoding, assetCosts.decodingBytes)
        try limits.admit(memory: memory)
        self.decodings = decodings
        self.outputs = outputs
        self.sources = sources
        longest = max(longest, assetCosts.unstoppableMilliseconds)
        unstoppable = longest.isFinite ? .seconds(longest / 1000) : .seconds(3600)
    }
}

/// The resampling of a span of pixels along one axis to a given number of pixels.
///
/// The span may begin and end inside pixels if the decoder has reduced the image. libvips crops at whole pixels and
/// resizes around the center of its input. The crop is therefore chosen so that its center is as close as possible to
/// that of the span, with the scale of the span. The remaining error is a ``shift`` of at most half a decoded pixel,
/// plus the pixels that the decoder cut off at the end of the image.
struct ResamplePlan: Hashable {
    /// The first used pixel.
    let start: Int
    /// The number of used pixels.
    let length: Int
    /// The number of output pixels per pixel.
    let scale: Double
    /// The distance between the centers of the crop and of the span, in output pixels.
    let shift: Double

    /// - Parameters:
    ///   - span: The span in pixels of the decoded image; not empty.
    ///   - count: The number of pixels of the decoded image.
    ///   - target: The number of output pixels.
    init(_ span: Range<Double>, of count: Int, to target: Int) {
        let extent = span.upperBound - span.lowerBound
        let middle = (span.lowerBound + span.upperBound) / 2
        let scale = Double(target) / extent

        /// Returns the crop of `length` pixels whose center is nearest, and its error.
        func crop(_ length: Int) -> (start: Int, length: Int, error: Double) {
            let ideal = middle - Double(length) / 2
            let start = min(max(0, Int(ideal.rounded())), count - length)
            return (start, length, abs(Double(start) - ideal))
        }
        let lengths = Set(
            [extent.rounded(.down), extent.rounded(), extent.rounded(.up)].map { min(max(1, Int($0)), count) })
        // libvips rounds the size of its output, so only lengths that round to the target are valid.
        let fitting = lengths.filter { abs(Double($0) * scale - Double(target)) < 0.49 }
        if let best = fitting.map(crop).min(by: { ($0.error, $0.length) < ($1.error, $1.length) }) {
            self.init(
                start: best.start, length: best.length, scale: best.length == target ? 1 : scale,
                shift: best.error * scale)
        } else {
            let nearest = crop(min(max(1, Int(extent.rounded())), count))
            self.init(
                start: nearest.start, length: nearest.length, scale: Double(target) / Double(nearest.length),
                shift: nearest.error * scale)
        }
    }

    private init(start: Int, length: Int, scale: Double, shift: Double) {
        self.shift = shift
        self.start = start
        self.length = length
        self.scale = scale
    }
}

// Some codecs process a whole image or frame without checking for cancellation. The duration is estimated from the
// number of pixels and the cost of a million of them.

extension SourceImage {
    /// The maximum CPU time in milliseconds for which decoding continues after cancellation, measured as described at
    /// `Image.isDecodedAtOnce`.
    var unstoppableMilliseconds: Double {
        guard header.isDecodedAtOnce else { return 0 }
        let perMillion =
            switch storedFormat {
            case .jpeg: 14.0
            case .png, .webp: 32.0
            case .gif: 18.0
            default: 100.0
            }
        return perMillion * Double(storedSize.pixels) / 1_000_000
    }
}

extension OutputPlan {
    /// Returns the maximum CPU time in milliseconds for which encoding continues after cancellation.
    ///
    /// Measured with libvips 8.14.1 as CPU milliseconds, cancelled after three tenths of encoding 12 megapixels (time
    /// from then to the return / total): JPEG 2 / 50, progressive 173 / 246; PNG 56 / 1394; TIFF 69 / 1404; WebP 1018 /
    /// 1468, of ten frames 99 / 1768; GIF of ten frames 688 / 18575; and for 3 megapixels: interlaced PNG 263 / 319,
    /// GIF 1830 / 4732, AVIF 306 / 445, JPEG XL 793 / 1100.
    ///
    /// - Parameter size: The size of a frame after all processors.
    func unstoppableMilliseconds(for size: PixelSize) -> Double {
        candidates.map { unstoppableMilliseconds(of: $0.output, for: size) }.max() ?? 0
    }

    /// A search checks for cancellation between encodings, so the longest one counts. Decoding the file to measure its
    /// similarity is part of it.
    private func unstoppableMilliseconds(of format: ImageFormat, for size: PixelSize) -> Double {
        let perMillion: Double
        switch format {
        // Quantization takes about as long as that of a GIF.
        case .png where variant.output.quantization != nil || variant.output.maximumBytes != nil: perMillion = 1577
        case .jpeg: perMillion = variant.output.progressive ? 20 : 0
        case .png: perMillion = variant.output.progressive ? 106 : 0
        // The upper half of the effort range takes twice as long, and so does lossless encoding.
        case .webp:
            let output = variant.output
            perMillion = 122 * (output.effort ?? 0 > 5 ? 2 : 1) * (output.lossless || output.nearLossless ? 2 : 1)
        case .gif: perMillion = 1577
        case .tiff: perMillion = 0
        default: perMillion = .infinity
        }
        return perMillion * Double(size.pixels) / 1_000_000
    }
}
