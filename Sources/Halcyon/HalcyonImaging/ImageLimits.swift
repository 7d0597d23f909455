import HalcyonModel

/// The limits of one rendering. All except the time are checked against headers and plans, before a pixel is decoded.
public struct ImageLimits: Sendable, Hashable, Codable {
    /// The maximum number of pixels in the source. For an animation, the pixels of all decoded frames.
    public var sourcePixels: Int
    /// The maximum number of decoded frames of an animation.
    public var frames: Int
    /// The maximum memory for decoding and for the pixels of the outputs together, in bytes, as estimated by
    /// ``LoadPlan``.
    public var decodedBytes: Int
    /// The maximum memory of a rendering including encoders, in bytes, as estimated by ``RenderPlan/memory``.
    public var renderedBytes: Int
    /// The maximum number of pixels in an output. For an animation, the pixels of all frames.
    public var outputPixels: Int
    /// The maximum number of encodings of each search for a quality or a number of bytes, at least 2. With the format
    /// `best`, there is one search for each candidate.
    public var encodings: Int
    /// The maximum time from reading the source to the last byte of the last output. A ``Renderer`` does not measure
    /// it. Its caller stops the rendering.
    public var renderTime: Duration
    /// The default tolerance for damaged sources, for jobs that do not specify one.
    public var tolerance: Tolerance

    /// Creates limits. The defaults are 100 million source pixels, 1000 frames, 64 million output pixels, 1 GiB for
    /// decoding, 8 encodings, 30 s, and no tolerance for damage.
    public init(
        sourcePixels: Int = 100_000_000, frames: Int = 1000, decodedBytes: Int = 1 << 30,
        renderedBytes: Int = 1 << 50, outputPixels: Int = 64_000_000, encodings: Int = 8,
        renderTime: Duration = .seconds(30), tolerance: Tolerance = .strict
    ) {
        self.sourcePixels = sourcePixels
        self.frames = frames
        self.decodedBytes = decodedBytes
        self.renderedBytes = renderedBytes
        self.outputPixels = outputPixels
        self.encodings = encodings
        self.renderTime = renderTime
        self.tolerance = tolerance
    }

    /// - Throws: `tooManyPixels` if a limit is exceeded.
    func admit(_ source: SourceImage, _ load: LoadPlan) throws(JobError) {
        let size = source.rawSize
        guard load.frames <= min(frames, source.format.countableFrames) else {
            let count =
                source.frames > source.format.countableFrames
                ? "more than \(source.format.countableFrames)" : String(source.frames)
            throw JobError(
                .tooManyPixels,
                """
                the source has \(count) frames; at most \(min(frames, source.format.countableFrames)) are allowed. \
                Limit them with the job's "frames"
                """)
        }
        guard size.pixels <= sourcePixels / load.frames else {
            let times = load.frames > 1 ? " in each of \(load.frames) frames" : ""
            throw JobError(
                .tooManyPixels,
                "the source has \(size.width)×\(size.height) pixels\(times); at most \(sourcePixels) are allowed")
        }
        guard load.estimatedBytes <= decodedBytes else {
            throw JobError(
                .tooManyPixels,
                "decoding needs about \(load.estimatedBytes >> 20) MiB; at most \(decodedBytes >> 20) MiB are allowed")
        }
    }

    /// The memory to reserve for a rendering without an estimate, in bytes.
    public var memory: Int { min(decodedBytes, renderedBytes) }

    /// - Throws: `tooManyPixels` if a limit is exceeded.
    func admit(memory: Int) throws(JobError) {
        guard memory <= renderedBytes else {
            throw JobError(
                .tooManyPixels,
                "rendering needs about \(memory >> 20) MiB; at most \(renderedBytes >> 20) MiB are allowed")
        }
    }

    /// - Throws: `tooManyPixels` if a limit is exceeded.
    func admit(_ output: OutputPlan, _ extensions: Extensions) throws(JobError) -> OutputSizes {
        let input = try admit(output.variant.before, on: output.sourceSize, frames: output.frames, extensions)
        let canvas = output.geometry.outputSize
        // The product of two sides could overflow, so each side is checked first.
        guard canvas.width <= outputPixels, canvas.height <= outputPixels,
            canvas.pixels <= outputPixels / output.frames
        else {
            let times = output.frames > 1 ? " in each of \(output.frames) frames" : ""
            throw JobError(
                .tooManyPixels,
                "the output would have \(canvas.width)×\(canvas.height) pixels\(times); \(outputPixels) are allowed")
        }
        var sizes = try admit(output.variant.processors, on: canvas, frames: output.frames, extensions)
        if !output.variant.before.isEmpty, input.largest.pixels > sizes.largest.pixels { sizes.largest = input.largest }
        let (size, side) = (sizes.last, output.format.greatestSide)
        guard size.width <= side, size.height <= side else {
            throw JobError(
                .tooManyPixels,
                "\(output.format.rawValue) supports at most \(side) pixels per side, not \(size.width)×\(size.height)")
        }
        return sizes
    }
}

extension ImageFormat {
    /// The maximum number of frames that the decoder can count. libnsgif stops one past its NSGIF_FRAME_COUNT_MAX of
    /// 4096, regardless of how many follow.
    var countableFrames: Int { self == .gif ? 4096 : 65_535 }

    /// The maximum side length supported by the encoder of the format.
    var greatestSide: Int {
        switch self {
        case .jpeg: 65_500  // libjpeg's JPEG_MAX_DIMENSION
        case .webp: 16_383  // RFC 9649: 14 bits
        case .avif: 16_384  // libvips' heifsave
        case .gif: 65_535  // GIF89a: 16 bits
        default: 100_000
        }
    }
}
