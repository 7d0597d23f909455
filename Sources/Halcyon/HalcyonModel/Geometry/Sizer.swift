/// A rule that gives an image its size when no display rectangle is named.
public enum Sizer: Hashable, Codable, Sendable {
    /// The image's own size.
    case natural
    /// At most this many pixels across, the height in proportion; enlarged only with `upscale`.
    case aspectScaleDownByWidth(Double)
    /// At most this many pixels down, the width in proportion; enlarged only with `upscale`.
    case aspectScaleDownByHeight(Double)

    /// The size of the output in pixels: each side rounded once, half away from zero, never below 1.
    /// - Parameters:
    ///   - image: the size of the image, or of what is left of it by a crop.
    ///   - upscale: whether an image smaller than the limit grows to it.
    public func size(of image: PixelSize, upscale: Bool = false) -> PixelSize {
        let factor =
            switch self {
            case .natural: 1.0
            case .aspectScaleDownByWidth(let limit): limit / Double(image.width)
            case .aspectScaleDownByHeight(let limit): limit / Double(image.height)
            }
        return factor < 1 || upscale ? image.scaled(by: factor) : image
    }
}

/// How the processor `resize` treats the aspect ratio (Kingfisher's `ResizingImageProcessor`).
public enum ResizeMode: String, CaseIterable, Codable, Sendable {
    /// The target size as it is.
    case none
    /// As large as fits inside the target.
    case aspectFit
    /// As small as covers the target.
    case aspectFill

    /// The size in pixels that `image` gets for `target`; it may grow.
    public func size(of image: PixelSize, into target: PixelSize) -> PixelSize {
        let across = Double(target.width) / Double(image.width)
        let down = Double(target.height) / Double(image.height)
        return switch self {
        case .none: target
        case .aspectFit: image.scaled(by: min(across, down))
        case .aspectFill: image.scaled(by: max(across, down))
        }
    }
}

extension PixelSize {
    /// Scaled in proportion.
    fileprivate func scaled(by factor: Double) -> PixelSize {
        PixelSize(width: rounded(Double(width) * factor), height: rounded(Double(height) * factor))
    }
}
