import HalcyonModel

/// How the stored pixels have to be turned to stand upright: EXIF's Orientation (CIPA DC-008, 4.6.4).
///
/// Geometry is about the upright image, decoders give the stored one. So rectangles are turned back, pixels are resized
/// as they are stored, and only the small result is turned.
enum Orientation: Int, CaseIterable {
    case upright = 1
    case mirrored, turned180, flipped, transposed, turned90, transversed, turned270

    /// Numbers that EXIF does not know count as upright.
    init(exif number: Int) {
        self = Orientation(rawValue: number) ?? .upright
    }

    /// Whether width and height change places.
    var swapsSides: Bool { rawValue >= 5 }

    /// The upright size of stored pixels. It is its own inverse.
    func upright(_ size: PixelSize) -> PixelSize {
        swapsSides ? PixelSize(width: size.height, height: size.width) : size
    }

    /// Where `rect` of the upright image of `size` lies in the stored one.
    func stored(_ rect: PixelRect, in size: PixelSize) -> PixelRect {
        let fromRight = size.width - rect.x - rect.width
        let fromBottom = size.height - rect.y - rect.height
        return switch self {
        case .upright: rect
        case .mirrored: PixelRect(x: fromRight, y: rect.y, width: rect.width, height: rect.height)
        case .turned180: PixelRect(x: fromRight, y: fromBottom, width: rect.width, height: rect.height)
        case .flipped: PixelRect(x: rect.x, y: fromBottom, width: rect.width, height: rect.height)
        case .transposed: PixelRect(x: rect.y, y: rect.x, width: rect.height, height: rect.width)
        case .turned90: PixelRect(x: rect.y, y: fromRight, width: rect.height, height: rect.width)
        case .transversed: PixelRect(x: fromBottom, y: fromRight, width: rect.height, height: rect.width)
        case .turned270: PixelRect(x: fromBottom, y: rect.x, width: rect.height, height: rect.width)
        }
    }
}
