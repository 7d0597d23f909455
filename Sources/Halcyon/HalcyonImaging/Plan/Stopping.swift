import HalcyonModel

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
