import HalcyonModel
import Vips

extension Image {
    /// Step 6, resize: the part of the stored pixels, at the size that it is to have. Nothing is computed yet.
    ///
    /// - Parameters:
    ///   - part: in pixels of the source as stored.
    ///   - level: how many of this picture's pixels there are for those.
    func resized(
        _ part: PixelRect, at level: DecodedImage.Level, to target: PixelSize, _ quality: InterpolationQuality
    ) throws(VipsError) -> Image {
        let (across, down) = (level.across, level.down)
        let x = Resampling(
            Double(part.x) * across..<Double(part.x + part.width) * across, of: width, to: target.width)
        let y = Resampling(
            Double(part.y) * down..<Double(part.y + part.height) * down, of: height, to: target.height)
        return try cropped(x.start, y.start, x.length, y.length).scaled(x.scale, y.scale, quality)
    }

    /// That part of the picture.
    func cropped(_ x: Int, _ y: Int, _ width: Int, _ height: Int) throws(VipsError) -> Image {
        guard width < self.width || height < self.height else { return self }
        return try Operation.call(
            "extract_area",
            ["input": .image(self), "left": .int(x), "top": .int(y), "width": .int(width), "height": .int(height)]
        ).image()
    }

    /// Scaled by these factors.
    func scaled(_ across: Double, _ down: Double, _ quality: InterpolationQuality) throws(VipsError) -> Image {
        guard across != 1 || down != 1 else { return self }
        // Colours of transparent pixels must not bleed into their neighbours.
        let premultiplied = hasAlpha ? try Operation.call("premultiply", ["in": .image(self)]).image() : self
        let resized = try Operation.call(
            "resize",
            [
                "in": .image(premultiplied), "scale": .double(across), "vscale": .double(down),
                "kernel": .string(quality.kernel),
            ]
        ).image()
        guard hasAlpha else { return resized }
        let straight = try Operation.call("unpremultiply", ["in": .image(resized)]).image()
        // Premultiplied samples have fractions; back to what they were.
        let format: Value? = sampleFormat == .uint8 ? "uchar" : sampleFormat == .uint16 ? "ushort" : nil
        guard let format else { return straight }
        // A cast cuts fractions off.
        let half = try Operation.call("linear", ["in": .image(straight), "a": [1], "b": [0.5]]).image()
        return try Operation.call("cast", ["in": .image(half), "format": format]).image()
    }
}

extension InterpolationQuality {
    /// libvips' name. When it enlarges, libvips takes bicubic for Lanczos.
    fileprivate var kernel: String {
        switch self {
        case .none: "nearest"
        case .low: "linear"
        case .medium: "cubic"
        case .high, .default: "lanczos3"
        }
    }
}
