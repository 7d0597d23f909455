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
