import HalcyonModel

extension ImageLimits {
    /// Holds each size that processors make on the way against ``outputPixels``, without a pixel.
    ///
    /// - Parameters:
    ///   - size: what the first one gets.
    ///   - frames: of an animation; 1 for a still image.
    /// - Throws: ``Failure`` `too_many_pixels` that names the processor.
    func admit(
        _ processors: [Processor], on size: PixelSize, frames: Int = 1, _ extensions: Extensions
    ) throws(Failure) -> OutputSizes {
        var (size, largest) = (size, size)
        for processor in processors {
            size = try extensions.size(of: size, after: processor)
            // A product of two sides could overflow: each is bounded first.
            guard size.width <= outputPixels, size.height <= outputPixels, size.pixels <= outputPixels / frames else {
                throw Failure(
                    .tooManyPixels,
                    "the processor \(processor.name) would make \(size.width)×\(size.height) pixels; "
                        + "\(outputPixels / frames) are allowed")
            }
            if size.pixels > largest.pixels { largest = size }
        }
        return OutputSizes(last: size, largest: largest)
    }
}

/// The sizes that a frame of an output has on its way through the processors.
struct OutputSizes: Hashable {
    /// Behind the last of them.
    let last: PixelSize
    /// With the most pixels, before, between or behind them.
    let largest: PixelSize
}
