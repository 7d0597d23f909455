#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

// The sizes that processors make, without a pixel: a list of them can be admitted or refused before anything is decoded.

extension Processor {
    /// The size of the picture behind this step, for a picture of `size`. A ``custom(_:)`` one is taken to keep it: what was
    /// registered says its own.
    public func size(of size: PixelSize) -> PixelSize {
        switch self {
        case .resize(let target, let mode): mode.size(of: size, into: target)
        case .downsample(let target):
            target.width < size.width || target.height < size.height
                ? ResizeMode.aspectFit.size(of: size, into: target) : size
        case .crop(let part, let anchor): size.part(part, anchor: anchor).size
        case .rotate(let degrees, _): size.turned(degrees: degrees)
        case .roundCorner, .blur, .tint, .overlay, .blend, .colorControls, .blackWhite, .border, .sharpen, .pixelate,
            .watermark, .flip, .custom:
            size
        }
    }
}

extension PixelSize {
    /// The part of a picture of this size that ``Processor/crop(_:anchor:)`` keeps: the anchor of the part lies on the
    /// anchor of the picture (Kingfisher's `CroppingImageProcessor`), what overruns is cut off.
    public func part(_ part: PixelSize, anchor: UnitPoint) -> PixelRect {
        let part = PixelSize(width: min(part.width, width), height: min(part.height, height))
        return PixelRect(
            x: rounded(Double(width - part.width) * anchor.x), y: rounded(Double(height - part.height) * anchor.y),
            width: part.width, height: part.height)
    }

    /// The smallest canvas that holds a picture of this size turned about its middle.
    func turned(degrees: Double) -> PixelSize {
        if let quarters = Processor.quarterTurns(degrees) {
            return quarters.isMultiple(of: 2) ? self : PixelSize(width: height, height: width)
        }
        let (across, down) = (abs(cos(degrees * .pi / 180)), abs(sin(degrees * .pi / 180)))
        // A part of a pixel too small to be seen is no reason for one more.
        func side(_ length: Double) -> Int { Int((length - 1e-3).rounded(.up)) }
        return PixelSize(
            width: side(Double(width) * across + Double(height) * down),
            height: side(Double(width) * down + Double(height) * across))
    }
}

extension Processor {
    /// How many times a turn by `degrees` is one by 90, 0 to 3; nil when it is between.
    public static func quarterTurns(_ degrees: Double) -> Int? {
        let quarters = degrees / 90
        guard quarters == quarters.rounded() else { return nil }
        return Int(quarters) & 3
    }
}

extension Watermark {
    /// The size that a mark of `mark` pixels gets on a picture of `size`: ``widthFraction`` of the picture's width, or its own
    /// size, and smaller in proportion where that is more than the room.
    public func size(of mark: PixelSize, on size: PixelSize) -> PixelSize {
        let room = room(on: size)
        let wanted = widthFraction.map { $0 * Double(size.width) / Double(mark.width) } ?? 1
        let scale = min(
            wanted, Double(room.width) / Double(mark.width), Double(room.height) / Double(mark.height))
        return PixelSize(
            width: min(room.width, rounded(Double(mark.width) * scale)),
            height: min(room.height, rounded(Double(mark.height) * scale)))
    }

    /// Where a mark lies that has its size already.
    public func place(of mark: PixelSize, on size: PixelSize) -> PixelRect {
        let room = room(on: size)
        let (across, down) = position.alignment ?? (.middle, .middle)
        return PixelRect(
            x: room.x + across.start(of: mark.width, in: room.width),
            y: room.y + down.start(of: mark.height, in: room.height), width: mark.width, height: mark.height)
    }

    /// The picture without ``margin`` on each side; its middle pixel where the margin leaves nothing.
    private func room(on size: PixelSize) -> PixelRect {
        let room = PixelSize(width: size.width - 2 * margin, height: size.height - 2 * margin)
        return PixelRect(
            x: (size.width - room.width) / 2, y: (size.height - room.height) / 2, width: room.width,
            height: room.height)
    }
}

extension ContentMode.Alignment {
    fileprivate func start(of length: Int, in room: Int) -> Int {
        switch self {
        case .leading: 0
        case .middle: (room - length) / 2
        case .trailing: room - length
        }
    }
}
