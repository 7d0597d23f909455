import HalcyonModel

/// What one rendering may cost at most. Everything but time is checked against headers and plans, before a pixel is
/// decoded.
public struct ImageLimits: Sendable, Hashable, Codable {
    /// Pixels of the source; of an animation its first frame, which alone is decoded.
    public var sourcePixels: Int
    /// Bytes of memory that decoding and the output's pixels may need together, as ``LoadPlan`` estimates them.
    public var decodedBytes: Int
    /// Pixels of the output.
    public var outputPixels: Int
    /// From the first look at the source to the last byte of the last output. A ``Renderer`` does not look at the clock:
    /// who runs it stops it then.
    public var renderTime: Duration

    /// 100 million pixels in, 64 million out, 1 GiB of memory, 30 s.
    public init(
        sourcePixels: Int = 100_000_000, decodedBytes: Int = 1 << 30, outputPixels: Int = 64_000_000,
        renderTime: Duration = .seconds(30)
    ) {
        self.sourcePixels = sourcePixels
        self.decodedBytes = decodedBytes
        self.outputPixels = outputPixels
        self.renderTime = renderTime
    }

    /// - Throws: `tooManyPixels`.
    func admit(_ source: SourceImage) throws(Failure) {
        let size = source.rawSize
        guard size.pixels <= sourcePixels else {
            throw Failure(
                .tooManyPixels, "the source has \(size.width)×\(size.height) pixels; \(sourcePixels) pixels are allowed"
            )
        }
    }

    /// - Throws: `tooManyPixels`.
    func admit(_ plan: SizingPlan, as format: ImageFormat) throws(Failure) {
        let size = plan.outputSize
        // A product of two sides could overflow: each is bounded first.
        guard size.width <= outputPixels, size.height <= outputPixels, size.pixels <= outputPixels else {
            throw Failure(
                .tooManyPixels, "the output would have \(size.width)×\(size.height) pixels; \(outputPixels) are allowed"
            )
        }
        let side = format.greatestSide
        guard size.width <= side, size.height <= side else {
            throw Failure(
                .tooManyPixels,
                "\(format.rawValue) holds at most \(side) pixels a side, not \(size.width)×\(size.height)")
        }
    }

    /// - Throws: `tooManyPixels`.
    func admit(_ load: LoadPlan) throws(Failure) {
        guard load.estimatedBytes <= decodedBytes else {
            throw Failure(
                .tooManyPixels,
                "decoding would take about \(load.estimatedBytes >> 20) MiB; \(decodedBytes >> 20) MiB are allowed")
        }
    }
}

extension ImageFormat {
    /// The longest side that an encoder of the format takes.
    fileprivate var greatestSide: Int {
        switch self {
        case .jpeg: 65_500  // libjpeg's JPEG_MAX_DIMENSION
        case .webp: 16_383  // RFC 9649: 14 bits
        case .avif: 16_384  // libvips' heifsave
        default: 100_000
        }
    }
}
