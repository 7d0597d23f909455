/// A rule that gives an image its size when no display rectangle is named.
public enum Sizer: Hashable, Sendable {
    /// The image's own size.
    case natural
    /// At most this many pixels across, the height in proportion; never enlarged.
    case aspectScaleDownByWidth(Double)
    /// At most this many pixels down, the width in proportion; never enlarged.
    case aspectScaleDownByHeight(Double)

    /// The size of the output in pixels: each side rounded once, half away from zero, never below 1.
    public func size(of image: PixelSize) -> PixelSize {
        switch self {
        case .natural: image
        case .aspectScaleDownByWidth(let limit): image.scaled(by: limit / Double(image.width))
        case .aspectScaleDownByHeight(let limit): image.scaled(by: limit / Double(image.height))
        }
    }
}

/// How the processor `resize` treats the aspect ratio (Kingfisher's `ResizingImageProcessor`).
public enum ResizeMode: String, Sendable {
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
        let scale: Double
        switch self {
        case .none: return target
        case .aspectFit: scale = min(across, down)
        case .aspectFill: scale = max(across, down)
        }
        return PixelSize(
            width: rounded(Double(image.width) * scale), height: rounded(Double(image.height) * scale))
    }
}

extension PixelSize {
    /// Scaled down in proportion; a factor of 1 or more leaves it as it is.
    fileprivate func scaled(by factor: Double) -> PixelSize {
        guard factor < 1 else { return self }
        return PixelSize(width: rounded(Double(width) * factor), height: rounded(Double(height) * factor))
    }
}
