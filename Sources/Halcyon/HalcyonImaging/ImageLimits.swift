import HalcyonModel

/// What one rendering may cost at most. Everything but time is checked against headers and plans, before a pixel is
/// decoded.
public struct ImageLimits: Sendable, Hashable, Codable {
    /// Pixels of the source; of an animation those of all frames that are decoded.
    public var sourcePixels: Int
    /// Frames of an animation that are decoded.
    public var frames: Int
    /// Bytes of memory that decoding and the outputs' pixels may need together, as ``LoadPlan`` estimates them.
    public var decodedBytes: Int
    /// Bytes of memory that a rendering may need in all, encoders included, as ``RenderPlan/memory`` estimates them.
    public var renderedBytes: Int
    /// Pixels of an output; of an animation those of all frames.
    public var outputPixels: Int
    /// From the first look at the source to the last byte of the last output. A ``Renderer`` does not look at the clock:
    /// who runs it stops it then.
    public var renderTime: Duration
    /// What damage to the source does no harm where the job does not say.
    public var tolerance: Tolerance

    /// 100 million pixels and 1000 frames in, 64 million pixels out, 1 GiB of memory, 30 s; no damage.
    public init(
        sourcePixels: Int = 100_000_000, frames: Int = 1000, decodedBytes: Int = 1 << 30,
        renderedBytes: Int = 1 << 50, outputPixels: Int = 64_000_000, renderTime: Duration = .seconds(30),
        tolerance: Tolerance = .strict
    ) {
        self.sourcePixels = sourcePixels
        self.frames = frames
        self.decodedBytes = decodedBytes
        self.renderedBytes = renderedBytes
        self.outputPixels = outputPixels
        self.renderTime = renderTime
        self.tolerance = tolerance
    }

    /// - Throws: `tooManyPixels`.
    func admit(_ source: SourceImage, _ load: LoadPlan) throws(Failure) {
        let size = source.rawSize
        guard load.frames <= min(frames, source.countableFrames) else {
            let count =
                source.frames > source.countableFrames
                ? "more than \(source.countableFrames)" : String(source.frames)
            throw Failure(
                .tooManyPixels,
                """
                the source has \(count) frames; \(min(frames, source.countableFrames)) are allowed: the job can ask for \
                fewer by "frames"
                """)
        }
        guard size.pixels <= sourcePixels / load.frames else {
            let times = load.frames > 1 ? " in each of \(load.frames) frames" : ""
            throw Failure(
                .tooManyPixels,
                "the source has \(size.width)×\(size.height) pixels\(times); \(sourcePixels) pixels are allowed")
        }
        guard load.estimatedBytes <= decodedBytes else {
            throw Failure(
                .tooManyPixels,
                "decoding would take about \(load.estimatedBytes >> 20) MiB; \(decodedBytes >> 20) MiB are allowed")
        }
    }

    /// Bytes of memory for a rendering of which nobody knows what it takes.
    public var memory: Int { min(decodedBytes, renderedBytes) }

    /// - Throws: `tooManyPixels`.
    func admit(memory: Int) throws(Failure) {
        guard memory <= renderedBytes else {
            throw Failure(
                .tooManyPixels,
                "rendering would take about \(memory >> 20) MiB; \(renderedBytes >> 20) MiB are allowed")
        }
    }

    /// - Throws: `tooManyPixels`.
    func admit(_ output: OutputPlan, _ extensions: Extensions) throws(Failure) -> OutputSizes {
        let canvas = output.geometry.outputSize
        // A product of two sides could overflow: each is bounded first.
        guard canvas.width <= outputPixels, canvas.height <= outputPixels,
            canvas.pixels <= outputPixels / output.frames
        else {
            let times = output.frames > 1 ? " in each of \(output.frames) frames" : ""
            throw Failure(
                .tooManyPixels,
                "the output would have \(canvas.width)×\(canvas.height) pixels\(times); \(outputPixels) are allowed")
        }
        let sizes = try admit(output.variant.processors, on: canvas, frames: output.frames, extensions)
        let (size, side) = (sizes.last, output.format.greatestSide)
        guard size.width <= side, size.height <= side else {
            throw Failure(
                .tooManyPixels,
                "\(output.format.rawValue) holds at most \(side) pixels a side, not \(size.width)×\(size.height)")
        }
        return sizes
    }
}

extension SourceImage {
    /// Frames that the decoder counts: libnsgif stops one behind its NSGIF_FRAME_COUNT_MAX of 4096, however many follow.
    fileprivate var countableFrames: Int { format == .gif ? 4096 : 65_535 }
}

extension ImageFormat {
    /// The longest side that an encoder of the format takes.
    fileprivate var greatestSide: Int {
        switch self {
        case .jpeg: 65_500  // libjpeg's JPEG_MAX_DIMENSION
        case .webp: 16_383  // RFC 9649: 14 bits
        case .avif: 16_384  // libvips' heifsave
        case .gif: 65_535  // GIF89a: 16 bits
        default: 100_000
        }
    }
}
