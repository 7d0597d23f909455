import HalcyonModel
import Vips

extension Image {
    /// Step 6, resize: scales the part of the stored pixels to its target size. Nothing is computed yet.
    ///
    /// - Parameters:
    ///   - part: The part in pixels of the source as stored.
    ///   - level: The ratio of this image's pixels to those of the source.
    ///   - linearLight: True to average light instead of its encoding. The result is 8-bit sRGB or gray.
    ///   - keepingProfile: True if the image keeps its color space in linear light.
    func resized(
        _ part: PixelRect, at level: DecodedImage.Level, to target: PixelSize, _ quality: InterpolationQuality,
        linearLight: Bool = false, keepingProfile: Bool = false
    ) throws(VipsError) -> Image {
        let (across, down) = (level.across, level.down)
        let x = ResamplePlan(
            Double(part.x) * across..<Double(part.x + part.width) * across, of: width, to: target.width)
        let y = ResamplePlan(
            Double(part.y) * down..<Double(part.y + part.height) * down, of: height, to: target.height)
        let used = try cropped(x.start, y.start, x.length, y.length)
        guard linearLight, x.scale != 1 || y.scale != 1 else { return try used.scaled(x.scale, y.scale, quality) }
        return try used.inSRGB(keepingProfile: keepingProfile).scaledInLinearLight(x.scale, y.scale, quality)
    }

    /// Scales 8-bit samples as light: decoded by the curve of sRGB, premultiplied, averaged, and encoded again.
    private func scaledInLinearLight(
        _ across: Double, _ down: Double, _ quality: InterpolationQuality
    ) throws(VipsError) -> Image {
        let isGray = channels < 3
        // Alpha is not light. Versions of libvips differ in the range that they convert it to.
        var light = try withoutAlpha().calling("colourspace", ["space": "scrgb"])
        if hasAlpha {
            light = try Operation.call("bandjoin", ["in": .images([light, alpha()])]).image()
                .calling("premultiply", ["max-alpha": 255])
        }
        light = try light.resampled(across: across, down: down, kernel: quality.kernel)
        if hasAlpha { light = try light.calling("unpremultiply", ["max-alpha": 255]) }
        let colors = try light.calling("extract_band", ["band": 0, "n": 3])
            .calling("copy", ["interpretation": "scrgb"])
            .calling("colourspace", ["space": isGray ? "b-w" : "srgb"])
        guard hasAlpha else { return colors }
        return try colors.joined(with: light.calling("extract_band", ["band": 3]).inBytes())
    }

    /// Scales by these factors.
    func scaled(_ across: Double, _ down: Double, _ quality: InterpolationQuality) throws(VipsError) -> Image {
        guard across != 1 || down != 1 else { return self }
        return try premultiplied { image throws(VipsError) in
            try image.resampled(across: across, down: down, kernel: quality.kernel)
        }
    }
}

extension InterpolationQuality {
    /// The libvips name. When enlarging, libvips substitutes bicubic for Lanczos, so that `high` and `medium` are the
    /// same.
    fileprivate var kernel: String {
        switch self {
        case .none: "nearest"
        case .low: "linear"
        case .medium: "cubic"
        case .high, .default: "lanczos3"
        }
    }
}

extension Image {
    /// Step 9, canvas: places the image on the background at its position in the output.
    func placed(_ plan: SizingPlan, on background: CSSColor) throws(VipsError) -> Image {
        guard plan.leavesExcess else { return self }
        var image = try ready(for: background)
        if !background.isOpaque { image = try image.withAlpha() }
        return try image.calling(
            "embed",
            [
                "x": .int(plan.destRect.x), "y": .int(plan.destRect.y),
                "width": .int(plan.outputSize.width), "height": .int(plan.outputSize.height),
                "extend": "background", "background": .doubles(image.samples(of: background)),
            ])
    }

    /// Step 11, flatten: removes alpha for formats that do not support it.
    func flattened(onto background: CSSColor, for format: ImageFormat) throws(VipsError) -> Image {
        format.hasAlpha ? self : try flattened(onto: background)
    }

    /// Removes alpha by compositing over an opaque background.
    func flattened(onto background: CSSColor) throws(VipsError) -> Image {
        guard hasAlpha else { return self }
        let image = try ready(for: background)
        return try image.calling("flatten", ["background": .doubles(image.samples(of: background).dropLast())])
    }

    /// Returns the image, converted to color if it is required to represent the color.
    func ready(for color: CSSColor) throws(VipsError) -> Image {
        color.isGrey ? self : try inColour()
    }

    /// Returns the color as the samples of a pixel of this image.
    func samples(of color: CSSColor) -> [Double] {
        let channels = bands < 3 ? [color.red] : [color.red, color.green, color.blue]
        let scale = sampleFormat == .uint16 ? 257.0 : 1
        return (channels + (hasAlpha ? [color.alpha] : [])).map { Double($0) * scale }
    }
}

extension CSSColor {
    fileprivate var isGrey: Bool { red == green && green == blue }
}

extension DecodedImage {
    /// Step 5, focus: returns the center of the part that the pixels select, in fractions of the upright source.
    func focus(of output: OutputPlan) throws -> UnitPoint {
        let level = frames[0]
        let crop = try output.variant.sizing.crop(of: output.inputSize)
        let window = output.geometry.sourceRect
        // 256 pixels are enough to find the focus and to place a window inside them to within half a percent.
        let scale = 256 / Double(max(crop.width, crop.height))
        let (across, down) = (max(1, Double(crop.width) * scale), max(1, Double(crop.height) * scale))
        let size = PixelSize(width: Int(across.rounded()), height: Int(down.rounded()))
        let small = try level.image
            .resized(output.part, at: level, to: output.orientation.upright(size), .low)
            .inSRGB(keepingProfile: false).turned(output.orientation)
        let kept = PixelSize(
            width: min(size.width, Int((Double(window.width) * scale).rounded())),
            height: min(size.height, Int((Double(window.height) * scale).rounded())))
        let cut = try Operation.call(
            "smartcrop",
            [
                "input": .image(small), "width": .int(kept.width), "height": .int(kept.height),
                "interesting": .string(output.variant.sizing.gravity == .entropy ? "entropy" : "attention"),
            ]
        ).image()
        // The number of pixels before the window is its offset, negated.
        let x = (Double(-cut.offset.x) + Double(kept.width) / 2) / Double(size.width)
        let y = (Double(-cut.offset.y) + Double(kept.height) / 2) / Double(size.height)
        return UnitPoint(
            x: (Double(crop.x) + x * Double(crop.width)) / Double(output.inputSize.width),
            y: (Double(crop.y) + y * Double(crop.height)) / Double(output.inputSize.height))
    }
}

extension Image {
    /// Step 8, orientation: makes the image upright.
    func turned(_ orientation: Orientation) throws(VipsError) -> Image {
        guard orientation != .upright else { return self }
        return try calling("autorot")
    }
}
