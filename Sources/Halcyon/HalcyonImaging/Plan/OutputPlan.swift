import HalcyonModel

/// Step 2, plan: what a variant takes from its source, and what becomes of it.
struct OutputPlan {
    let variant: Variant
    let format: ImageFormat
    let encoder: Encoder
    /// How many frames are kept; 1 for a still image.
    let frames: Int
    /// The geometry; with the middle kept, where the pixels are still to say what is.
    let geometry: SizingPlan
    /// The part of the stored pixels that is needed.
    let part: PixelRect
    /// What is seen where the image does not reach: opaque in formats without alpha.
    let background: CSSColor

    /// - Throws: ``Failure`` for a format that cannot be written here, for geometry that does not work, and for what is not
    ///   registered.
    init(_ variant: Variant, of source: SourceImage, _ extensions: Extensions) throws(Failure) {
        try extensions.validate(variant)
        self.variant = variant
        geometry = try variant.sizing.plan(for: source.size, custom: extensions.plan)
        let isTransparent =
            source.header.hasAlpha || (geometry.leavesExcess && !variant.background.isOpaque)
            || variant.processors.contains(where: extensions.makesTransparency)
        let wanted = min(source.frames, variant.output.frames ?? source.frames)
        format =
            variant.output.format
            ?? .automatic(source: source.format, isTransparent: isTransparent, isAnimated: wanted > 1)
        frames = format.hasAnimation ? wanted : 1
        background = format.hasAlpha ? variant.background : variant.background.over(.white)
        guard let encoder = Encoder(format, variant.output) else {
            throw Failure(.unsupportedFormat, "\(format.rawValue) cannot be written by the libraries installed here")
        }
        self.encoder = encoder
        part = source.orientation.stored(
            variant.needsFocus ? try variant.sizing.crop(of: source.size) : geometry.sourceRect, in: source.size)
    }

    /// Pixels of the stored source for each pixel of the output, along the side where they are fewer. What is kept has no
    /// influence on it.
    var spare: Double {
        min(
            Double(geometry.sourceRect.width) / Double(geometry.destRect.width),
            Double(geometry.sourceRect.height) / Double(geometry.destRect.height))
    }
}

extension Variant {
    /// Whether the pixels decide which part is kept.
    var needsFocus: Bool { sizing.gravity.needsPixels && sizing.isCutByGravity }
}

extension CSSColor {
    /// This colour laid over an opaque one.
    fileprivate func over(_ ground: CSSColor) -> CSSColor {
        func mixed(_ above: UInt8, _ below: UInt8) -> UInt8 {
            let opacity = Int(alpha)
            let sum = Int(above) * opacity + Int(below) * (255 - opacity)
            return UInt8((sum + 127) / 255)
        }
        return CSSColor(
            red: mixed(red, ground.red), green: mixed(green, ground.green), blue: mixed(blue, ground.blue))
    }
}

extension ImageFormat {
    /// The format of an output for which the job named none: the kind of the source is kept.
    ///
    /// An animation stays what it is, and so does WebP. Otherwise transparency, in the source or made on the way, becomes a
    /// PNG, and so do sources that are drawn rather than photographed (PNG, GIF, SVG, PDF). Everything else is a
    /// photograph: JPEG.
    static func automatic(source: ImageFormat, isTransparent: Bool, isAnimated: Bool) -> ImageFormat {
        switch source {
        case .webp: .webp
        case .gif where isAnimated: .gif
        case .png, .gif, .svg, .pdf: .png
        default: isTransparent ? .png : .jpeg
        }
    }
}

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
