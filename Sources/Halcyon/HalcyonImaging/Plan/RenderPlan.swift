import HalcyonModel
import Vips

/// What a rendering is going to do, as far as headers tell: nothing of it is done.
///
/// Confined to the thread that made it, as its pictures are.
public struct RenderPlan {
    let source: SourceImage
    let outputs: [OutputPlan]
    /// The decodings, one after the other, each with the outputs that share it, as indices.
    let decodings: [(load: LoadPlan, outputs: [Int])]

    /// How long the rendering may go on after it was told to stop, in time of a processor: some codecs do not look up before
    /// they have made a whole picture. An estimate.
    public let unstoppable: Duration

    /// Bytes of memory that it will take at most: decoding, the outputs' pixels, and what encoders keep beside them. An estimate.
    public let memory: Int

    /// True if it decodes more than one frame.
    public var isAnimated: Bool { decodings.contains { $0.load.frames > 1 } }

    /// - Throws: ``Failure``: for what is no image, what cannot be made of it, and what would be more than is allowed.
    init(
        _ file: EncodedImage, _ variants: [Variant], within limits: ImageLimits, _ extensions: Extensions
    ) throws(Failure) {
        // One that is not to be made of a truncated file fails the others.
        let toleratesCut = variants.allSatisfy { ($0.tolerance ?? limits.tolerance) == .truncated }
        source = try SourceImage(file, toleratingCut: toleratesCut)
        var outputs: [OutputPlan] = []
        var sizes: [OutputSizes] = []
        var longest = source.unstoppableMilliseconds
        for (index, variant) in variants.enumerated() {
            do throws(Failure) {
                let output = try OutputPlan(variant, of: source, extensions)
                sizes.append(try limits.admit(output, extensions))
                longest = max(longest, output.unstoppableMilliseconds(for: sizes[index].last))
                outputs.append(output)
            } catch {
                throw error.of(variant: index)
            }
        }
        var shared: [(reduction: LoadPlan.Reduction, outputs: [Int])] = []
        for (index, output) in outputs.enumerated() {
            let reduction = LoadPlan.Reduction(for: output, of: source)
            if let place = shared.firstIndex(where: { $0.reduction == reduction }) {
                shared[place].outputs.append(index)
            } else {
                shared.append((reduction, [index]))
            }
        }
        var decodings: [(load: LoadPlan, outputs: [Int])] = []
        for (reduction, indices) in shared {
            let load = LoadPlan(reduction, indices.map { outputs[$0] }, indices.map { sizes[$0] }, of: source)
            try limits.admit(source, load)
            decodings.append((load, indices))
        }
        let encoding = outputs.indices.map { outputs[$0].encoderBytes(for: sizes[$0].last) }.max() ?? 0
        memory = (decodings.map(\.load.estimatedBytes).max() ?? 0) + encoding
        try limits.admit(memory: memory)
        self.decodings = decodings
        self.outputs = outputs
        unstoppable = longest.isFinite ? .seconds(longest / 1000) : .seconds(3600)
    }
}

/// How a span of pixels along one axis becomes a given number of pixels.
///
/// The span may begin and end inside pixels, when the decoder has shrunk the picture. libvips crops at whole pixels and
/// resizes about the middle of what it gets, so the crop is chosen such that its middle is as near as can be to the
/// span's, and the scale is the span's own: what remains is a shift of at most a quarter of a decoded pixel, plus what
/// the decoder cut off at the picture's end.
struct Resampling: Hashable {
    /// The first pixel that is used.
    let start: Int
    /// How many are used.
    let length: Int
    /// Output pixels per pixel.
    let scale: Double

    /// - Parameters:
    ///   - span: in pixels of the decoded picture, not empty.
    ///   - count: how many pixels the decoded picture has.
    ///   - target: how many pixels the span becomes.
    init(_ span: Range<Double>, of count: Int, to target: Int) {
        let extent = span.upperBound - span.lowerBound
        let middle = (span.lowerBound + span.upperBound) / 2
        let scale = Double(target) / extent

        /// The crop of `length` pixels whose middle is nearest, and how far off it is.
        func crop(_ length: Int) -> (start: Int, length: Int, error: Double) {
            let ideal = middle - Double(length) / 2
            let start = min(max(0, Int(ideal.rounded())), count - length)
            return (start, length, abs(Double(start) - ideal))
        }
        let lengths = Set(
            [extent.rounded(.down), extent.rounded(), extent.rounded(.up)].map { min(max(1, Int($0)), count) })
        // libvips rounds the size of its output: only lengths that round to the target will do.
        let fitting = lengths.filter { abs(Double($0) * scale - Double(target)) < 0.49 }
        if let best = fitting.map(crop).min(by: { ($0.error, $0.length) < ($1.error, $1.length) }) {
            self.init(start: best.start, length: best.length, scale: best.length == target ? 1 : scale)
        } else {
            let nearest = crop(min(max(1, Int(extent.rounded())), count))
            self.init(start: nearest.start, length: nearest.length, scale: Double(target) / Double(nearest.length))
        }
    }

    private init(start: Int, length: Int, scale: Double) {
        self.start = start
        self.length = length
        self.scale = scale
    }
}

// Some codecs take a picture, or a frame of one, whole, and do not look up before they are done. How long that is can be
// told beforehand, about: from the pixels, and what a million of them costs.

extension SourceImage {
    /// Milliseconds of a processor that decoding goes on, at most, after it was told to stop: measured as
    /// `Image.isDecodedAtOnce` says.
    var unstoppableMilliseconds: Double {
        guard header.isDecodedAtOnce else { return 0 }
        let perMillion =
            switch format {
            case .jpeg: 14.0
            case .png, .webp: 32.0
            case .gif: 18.0
            default: 100.0
            }
        return perMillion * Double(rawSize.pixels) / 1_000_000
    }
}

extension OutputPlan {
    /// Milliseconds of a processor that encoding goes on, at most, after it was told to stop.
    ///
    /// Measured with libvips 8.14.1 as CPU milliseconds, cancelled after three tenths of encoding 12 megapixels (from then to
    /// the return / the whole): JPEG 2 / 50, progressive 173 / 246; PNG 56 / 1394; TIFF 69 / 1404; WebP 1018 / 1468, of ten
    /// frames 99 / 1768; GIF of ten frames 688 / 18575; and 3 megapixels: interlaced PNG 263 / 319, GIF 1830 / 4732, AVIF
    /// 306 / 445, JPEG XL 793 / 1100.
    ///
    /// - Parameter size: of a frame, behind all processors.
    func unstoppableMilliseconds(for size: PixelSize) -> Double {
        let perMillion: Double
        switch format {
        case .jpeg: perMillion = variant.output.progressive ? 20 : 0
        case .png: perMillion = variant.output.progressive ? 106 : 0
        // The second half of the efforts takes twice as long, and what is lossless again.
        case .webp: perMillion = 122 * ((variant.output.effort ?? 0) > 5 ? 2 : 1) * (variant.output.lossless ? 2 : 1)
        case .gif: perMillion = 1577
        case .tiff: perMillion = 0
        default: perMillion = .infinity
        }
        return perMillion * Double(size.pixels) / 1_000_000
    }
}
