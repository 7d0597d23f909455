#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

// The output sizes of processors, computed without pixels. A list of processors can be rejected before anything is
// decoded.

extension Processor {
    /// Returns the size of the picture after this step, for a picture of `size`. A ``custom(_:)`` processor is assumed
    /// to preserve the size; the registered extension computes its own.
    public func size(of size: PixelSize) -> PixelSize {
        switch self {
        case .resize(let target, let mode): mode.size(of: size, into: target)
        case .downsample(let target):
            target.width < size.width || target.height < size.height
                ? ResizeMode.aspectFit.size(of: size, into: target) : size
        case .crop(let part, let anchor): size.part(part, anchor: anchor).size
        case .rotate(let degrees, _): size.turned(degrees: degrees)
        case .pad(let pad):
            PixelSize(width: size.width + pad.left + pad.right, height: size.height + pad.top + pad.bottom)
        case .roundCorner, .blur, .tint, .overlay, .blend, .colorControls, .blackWhite, .border, .sharpen, .pixelate,
            .watermark, .flip, .text, .mask, .hue, .gamma, .normalize, .duotone, .hideFaces, .custom:
            size
        }
    }
}

extension PixelSize {
    /// Returns the part of a picture of this size that ``Processor/crop(_:anchor:)`` retains. The anchors of the part
    /// and of the picture coincide, as in Kingfisher's `CroppingImageProcessor`, and a part larger than the picture is
    /// clipped.
    public func part(_ part: PixelSize, anchor: UnitPoint) -> PixelRect {
        let part = PixelSize(width: min(part.width, width), height: min(part.height, height))
        return PixelRect(
            x: rounded(Double(width - part.width) * anchor.x), y: rounded(Double(height - part.height) * anchor.y),
            width: part.width, height: part.height)
    }

    /// Returns the smallest canvas that holds a picture of this size rotated about its center.
    func turned(degrees: Double) -> PixelSize {
        if let quarters = Processor.quarterTurns(degrees) {
            return quarters.isMultiple(of: 2) ? self : PixelSize(width: height, height: width)
        }
        let (across, down) = (abs(cos(degrees * .pi / 180)), abs(sin(degrees * .pi / 180)))
        // An invisible fraction of a pixel does not enlarge the canvas.
        func side(_ length: Double) -> Int { Int((length - 1e-3).rounded(.up)) }
        return PixelSize(
            width: side(Double(width) * across + Double(height) * down),
            height: side(Double(width) * down + Double(height) * across))
    }
}

extension Processor {
    /// Returns the number of quarter turns in `degrees`, 0 to 3; nil if `degrees` is not a multiple of 90.
    public static func quarterTurns(_ degrees: Double) -> Int? {
        let quarters = degrees / 90
        guard quarters == quarters.rounded() else { return nil }
        return Int(quarters) & 3
    }
}

extension Watermark {
    /// Returns the size of a watermark of `mark` pixels on a picture of `size`: ``widthFraction`` of the picture's
    /// width, or ``scale`` times the watermark's own size. It is reduced in proportion to fit inside the margins.
    public func size(of mark: PixelSize, on size: PixelSize) -> PixelSize {
        let room = size.room(within: margin).size.sides
        var sides = (width: mark.sides.width * scale, height: mark.sides.height * scale)
        if let widthFraction {
            sides = scaledSides(mark.sides, into: (widthFraction * size.sides.width, .infinity))
        }
        if sides.width > room.width || sides.height > room.height { sides = scaledSides(mark.sides, into: room) }
        return PixelSize(width: rounded(sides.width), height: rounded(sides.height))
    }

    /// Returns the rectangle of a watermark that has been scaled to `mark`. With ``offset`` it may extend beyond the
    /// picture.
    public func place(of mark: PixelSize, on size: PixelSize) -> PixelRect {
        var place = size.room(within: margin).placing(mark, at: position)
        place.x += offset.x
        place.y += offset.y
        return place
    }
}

extension PixelSize {
    /// Returns the area of a picture of this size without `margin` on each side; at least the center pixel.
    public func room(within margin: Int) -> PixelRect {
        let room = PixelSize(width: width - 2 * margin, height: height - 2 * margin)
        return PixelRect(
            x: (width - room.width) / 2, y: (height - room.height) / 2, width: room.width, height: room.height)
    }
}

extension PixelRect {
    /// Returns the rectangle of something inside this one.
    /// - Parameters:
    ///   - size: The size of that in pixels.
    ///   - position: One of the nine unscaled content modes.
    public func placing(_ size: PixelSize, at position: ContentMode) -> PixelRect {
        let (across, down) = position.alignment ?? (.middle, .middle)
        return PixelRect(
            x: x + across.start(of: size.width, in: width), y: y + down.start(of: size.height, in: height),
            width: size.width, height: size.height)
    }
}

extension ContentMode.Alignment {
    /// Returns the distance from the start of the room, rounded down for the middle.
    func start(of length: Int, in room: Int) -> Int {
        switch self {
        case .leading: 0
        case .middle: (room - length) / 2
        case .trailing: room - length
        }
    }
}
