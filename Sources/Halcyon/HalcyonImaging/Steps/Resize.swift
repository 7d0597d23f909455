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

    /// Scaled by these factors.
    func scaled(_ across: Double, _ down: Double, _ quality: InterpolationQuality) throws(VipsError) -> Image {
        guard across != 1 || down != 1 else { return self }
        return try premultiplied { image throws(VipsError) in
            try image.resampled(across: across, down: down, kernel: quality.kernel)
        }
    }
}

extension InterpolationQuality {
    /// libvips' name. When it enlarges, libvips takes bicubic for Lanczos, so that `high` and `medium` are the same there.
    fileprivate var kernel: String {
        switch self {
        case .none: "nearest"
        case .low: "linear"
        case .medium: "cubic"
        case .high, .default: "lanczos3"
        }
    }
}
