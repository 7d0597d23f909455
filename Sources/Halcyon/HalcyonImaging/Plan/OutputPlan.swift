import HalcyonModel

/// Step 2, plan: the part of the source that a variant uses, and its transformation.
struct OutputPlan {
    let variant: Variant
    let format: ImageFormat
    let encoder: Encoder
    /// The upright size of the source.
    let sourceSize: PixelSize
    /// The upright size of the picture that is cropped and sized: that of the source after the processors before it.
    let inputSize: PixelSize
    /// The orientation of that picture. The processors before sizing receive, and produce, an upright one.
    let orientation: Orientation
    /// The encoders of the formats that the output may have: ``encoder``, or those of `best`.
    let candidates: [Encoder]
    /// The number of output frames; 1 for a still image.
    let frames: Int
    /// The geometry. Until the pixels determine the focus, the center is used.
    let geometry: SizingPlan
    /// The required part of the stored pixels.
    let part: PixelRect
    /// The background where the image does not cover the output. Opaque in formats without alpha.
    let background: CSSColor

    /// - Throws: ``JobError`` for a format that cannot be encoded here, invalid geometry, or an unknown extension.
    init(_ variant: Variant, of source: SourceImage, _ extensions: Extensions) throws(JobError) {
        try extensions.validate(variant)
        if let conflict = variant.bitDepthConflict { throw JobError(.unsupportedFormat, "bitDepth: \(conflict)") }
        let variant = variant.analyzed
        self.variant = variant
        sourceSize = source.size
        inputSize = try extensions.size(of: source.size, after: variant.before)
        orientation = variant.before.isEmpty ? source.orientation : .upright
        geometry = try variant.sizing.plan(for: inputSize, custom: extensions.plan)
        let isTransparent =
            source.header.hasAlpha || (geometry.leavesExcess && !variant.background.isOpaque)
            || variant.allProcessors.contains(where: extensions.makesTransparency)
        let wanted = min(source.frames, variant.output.frames ?? source.frames)
        let automatic = ImageFormat.automatic(
            source: source.format, isTransparent: isTransparent, isAnimated: wanted > 1)
        let best =
            variant.output.choosesFormat
            ? ImageFormat.candidates(
                automatic, variant.output, isTransparent: isTransparent, isAnimated: wanted > 1) : []
        format = best.first?.output ?? variant.output.format ?? automatic
        frames = format.hasAnimation ? wanted : 1
        background = format.hasAlpha ? variant.background : variant.background.over(.white)
        guard let encoder = best.first ?? Encoder(format, variant.output) else {
            throw JobError(.unsupportedFormat, "the installed libraries cannot write \(format.rawValue)")
        }
        self.encoder = encoder
        candidates = best.isEmpty ? [encoder] : best
        if frames > 1, let hiding = variant.allProcessors.first(where: \.hidesFaces) {
            throw JobError(
                .unsupportedFormat,
                "\(hiding.name) is for still images; set frames to 1 to render the first frame of an animation")
        }
        guard variant.output.profile == nil || variant.assets.isEmpty else {
            throw JobError(
                .unsupportedFormat,
                "the profile p3 cannot be combined with pictures in processors, which are in sRGB")
        }
        guard variant.output.profile == nil || variant.before.isEmpty && !variant.linearLight else {
            throw JobError(
                .unsupportedFormat,
                "the profile p3 cannot be combined with linearLight and processors before sizing, which use sRGB")
        }
        part = orientation.stored(
            variant.needsFocus ? try variant.sizing.crop(of: inputSize) : geometry.sourceRect, in: inputSize)
    }

    /// Returns the plan for the part of the picture that is left after its margins have been removed.
    /// - Throws: ``JobError``, also if a limit is exceeded.
    func trimmed(
        to content: PixelRect, of source: SourceImage, within limits: ImageLimits, _ extensions: Extensions
    ) throws(JobError) -> OutputPlan {
        var variant = variant
        variant.sizing.trim = nil
        variant.sizing.cropRect = CropRect(
            x: Double(content.x), y: Double(content.y), width: Double(content.width), height: Double(content.height),
            unit: .pixels)
        let plan = try OutputPlan(variant, of: source, extensions)
        _ = try limits.admit(plan, extensions)
        return plan
    }

    /// The number of stored source pixels per output pixel, along the side where it is smaller. It does not depend on
    /// the focus.
    var spare: Double {
        min(
            Double(geometry.sourceRect.width) / Double(geometry.destRect.width),
            Double(geometry.sourceRect.height) / Double(geometry.destRect.height))
    }
}

extension Variant {
    /// The variant, or the small image to analyze for one that reports facts.
    fileprivate var analyzed: Variant {
        guard info != nil else { return self }
        var variant = self
        let side = Double(ImageInfo.analyzedSide)
        variant.sizing = Sizing(
            goal: .display(
                Display(width: side, height: side, contentMode: .scaleAspectFit, scaleOptions: .fitCropsExcess)),
            upscale: false)
        variant.output = OutputOptions(format: .png, frames: 1)
        return variant
    }

    /// True if pixels are decoded. Otherwise the header is enough.
    var needsPixels: Bool { info == nil || !findings.isEmpty }

    /// True if the pixels determine the part that is used.
    var needsFocus: Bool { sizing.gravity.needsPixels && sizing.isCutByGravity }

    /// True if all pixels are analyzed or processed before the picture is sized.
    var needsWholeImage: Bool { needsFocus || !before.isEmpty || sizing.trim != nil }

    /// True if all pixels of the source are required at its own resolution before the picture is sized.
    var needsFullResolution: Bool { !before.isEmpty || sizing.trim != nil || linearLight }
}

extension CSSColor {
    /// Returns this color composited over an opaque one.
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
    /// Returns the format of an output for which the job specified none. It preserves the kind of the source.
    ///
    /// An animation keeps its format, and so does WebP. Otherwise images with transparency, in the source or added by
    /// processing, become PNG, and so do source formats for graphics (PNG, GIF, SVG, PDF, BMP, ICO). Everything else is
    /// treated as a photograph and becomes JPEG.
    static func automatic(source: ImageFormat, isTransparent: Bool, isAnimated: Bool) -> ImageFormat {
        switch source {
        case .webp: .webp
        case .gif where isAnimated: .gif
        case .png, .gif, .svg, .pdf, .bmp, .ico: .png
        default: isTransparent ? .png : .jpeg
        }
    }

    /// Returns the encoders for the formats among which `best` chooses: those that browsers display, the picture fits,
    /// and the installed libraries can write and, to measure the similarity, decode. The first one has the largest
    /// limits.
    fileprivate static func candidates(
        _ automatic: ImageFormat, _ output: OutputOptions, isTransparent: Bool, isAnimated: Bool
    ) -> [Encoder] {
        let formats: [ImageFormat] =
            if isAnimated { [.webp, .gif] } else {
                [automatic == .png || isTransparent || output.lossless ? .png : .jpeg, .webp, .avif]
            }
        return formats.compactMap { Encoder($0, output) }
            .filter { output.targetSimilarity == nil || $0.isLossless || $0.canDecode }
    }
}

extension OutputPlan {
    /// Returns the maximum memory of the encoder, in bytes, in addition to the pixels that ``LoadPlan`` counts.
    ///
    /// Measured with libvips 8.14.1 as the growth of a process in bytes per pixel, for images of 0.2 to 24 million
    /// pixels, in total: JPEG, PNG, TIFF and WebP 5 to 8, lossless WebP 35, AVIF 23 plus 8 MB, GIF 15 plus 10 MB, JPEG
    /// XL 44, lossless 67, and 254 from effort 8. ``LoadPlan`` counts 12.
    ///
    /// - Parameter size: The size of a frame after all processors.
    func encoderBytes(for size: PixelSize) -> Int {
        let options = variant.output
        // A search encodes one file after the other. For the similarity it decodes them, next to the brightness of the
        // picture; to shrink the picture, it holds a smaller copy.
        let search = (options.targetSimilarity != nil ? 20 : 0) + (options.allowsResizing ? 4 : 0)
        let most = candidates.map { encoderBytes(of: $0.output, for: size) }.max() ?? 0
        // Encoders hold deep samples in twice as many bytes.
        return most * (options.bitDepth == nil ? 1 : 2) + search * size.pixels * frames
    }

    private func encoderBytes(of format: ImageFormat, for size: PixelSize) -> Int {
        let options = variant.output
        let (fixed, perPixel) =
            switch format {
            // Quantization needs as much as for a GIF, and the coefficients of all colors.
            case .png where options.quantization != nil || options.maximumBytes != nil: (24 << 20, 16)
            case .avif: (8 << 20, 14)
            case .gif: (24 << 20, 4)
            case .webp where options.lossless || options.nearLossless: (0, 26)
            case .jxl: (8 << 20, (options.effort ?? 0) > 6 ? 250 : options.lossless ? 60 : 36)
            default: (0, 0)
            }
        return fixed + perPixel * size.pixels
    }
}
