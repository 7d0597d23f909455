import HalcyonModel

extension OutputPlan {
    /// Bytes of memory that the encoder keeps beside the pixels that ``LoadPlan`` counts, at most.
    ///
    /// Measured with libvips 8.14.1 as bytes a pixel that a process grew by, of pictures of 0.2 to 24 million pixels, in all: JPEG, PNG,
    /// TIFF and WebP 5 to 8, lossless WebP 35, AVIF 23 and 8 MB, GIF 15 and 10 MB, JPEG XL 44, lossless 67, and 254 from
    /// its effort 8 on. ``LoadPlan`` counts 12.
    ///
    /// - Parameter size: of a frame, behind all processors.
    func encoderBytes(for size: PixelSize) -> Int {
        let options = variant.output
        let (fixed, perPixel) =
            switch format {
            case .avif: (8 << 20, 14)
            case .gif: (24 << 20, 4)
            case .webp where options.lossless: (0, 26)
            case .jxl: (8 << 20, (options.effort ?? 0) > 6 ? 250 : options.lossless ? 60 : 36)
            default: (0, 0)
            }
        return fixed + perPixel * size.pixels
    }
}
