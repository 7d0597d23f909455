import HalcyonModel

/// Step 3, shrink on load: how much smaller the decoder may make the picture on its way, and what that will take.
///
/// JPEG's DCT can be taken at 1/2, 1/4 or 1/8, and WebP is scaled to any size: both cost a fraction of decoding whole.
/// The decoded part must not be smaller than the output, so that the last step is a real resize with a good kernel.
struct LoadPlan: Hashable {
    enum Reduction: Hashable {
        case none
        /// JPEG: 2, 4 or 8.
        case shrink(Int)
        /// WebP: above 0, below 1.
        case scale(Double)
    }

    let reduction: Reduction
    /// Bytes of memory that decoding will take at most, and the output's pixels with it.
    let estimatedBytes: Int

    /// - Parameters:
    ///   - part: the part of the stored pixels that is used.
    ///   - target: the size that it gets.
    ///   - smooth: false for nearest neighbour, which promises pixels of the source and no averages.
    init(
        format: ImageFormat, size: PixelSize, isProgressive: Bool, samples: Int, part: PixelSize, target: PixelSize,
        smooth: Bool
    ) {
        let spare = min(
            Double(part.width) / Double(target.width), Double(part.height) / Double(target.height))
        let reduction: Reduction =
            switch format {
            case .jpeg where smooth && spare >= 2: .shrink(spare >= 8 ? 8 : spare >= 4 ? 4 : 2)
            case .webp where smooth && spare > 1: .scale(1 / spare)
            default: .none
            }
        self.reduction = reduction

        let linear =
            switch reduction {
            case .none: 1.0
            case .shrink(let factor): 1 / Double(factor)
            case .scale(let factor): factor
            }
        let whole = size.pixels * samples
        let decoding =
            switch format {
            // A progressive JPEG keeps all coefficients, 16 bits each, until its last scan; a baseline one a few rows.
            case .jpeg: isProgressive ? whole * 2 : size.width * samples * 64
            case .png: isProgressive ? whole : size.width * samples * 64
            case .webp: Int(Double(size.pixels) * 4 * linear * linear) + size.width * 64
            // The whole picture, and the library's own copy of it.
            default: whole * 2
            }
        // The picture and what is made of it: colours, the turned one, the canvas.
        estimatedBytes = decoding + target.pixels * samples * 3
    }
}

extension LoadPlan {
    /// The plan for a part of a source.
    init(_ source: SourceImage, part: PixelRect, target: PixelSize, quality: InterpolationQuality) {
        let header = source.header
        let bytesPerSample = header.sampleFormat == .uint8 ? 1 : header.sampleFormat == .uint16 ? 2 : 4
        self.init(
            format: source.format, size: source.rawSize,
            isProgressive: header.text(of: "jpeg-multiscan") == "1" || header.text(of: "interlaced") == "1",
            samples: header.bands * bytesPerSample, part: part.size, target: target, smooth: quality != .none)
    }
}
