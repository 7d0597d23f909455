/// A size in whole pixels, never below 1×1.
public struct PixelSize: Hashable, Codable, Sendable {
    /// Pixels across.
    public var width: Int
    /// Pixels down.
    public var height: Int

    /// Sides below 1 become 1: no image has an empty side.
    public init(width: Int, height: Int) {
        self.width = max(1, width)
        self.height = max(1, height)
    }

    /// Width times height.
    public var pixels: Int { width * height }
}

/// A rectangle in whole pixels; the origin is the top left corner, x runs right and y down.
public struct PixelRect: Hashable, Codable, Sendable {
    /// Distance of the left side from the image's left side.
    public var x: Int
    /// Distance of the upper side from the image's upper side.
    public var y: Int
    /// Pixels across, at least 1.
    public var width: Int
    /// Pixels down, at least 1.
    public var height: Int

    /// Sides below 1 become 1.
    public init(x: Int, y: Int, width: Int, height: Int) {
        self.x = x
        self.y = y
        self.width = max(1, width)
        self.height = max(1, height)
    }

    /// The whole of an image.
    public init(_ size: PixelSize) {
        self.init(x: 0, y: 0, width: size.width, height: size.height)
    }

    /// Width and height.
    public var size: PixelSize { PixelSize(width: width, height: height) }
}

/// A part of an image in fractions of its sides, as UIKit's `contentsRect`: x and y in 0..<1, width and height above 0.
public struct UnitRect: Hashable, Codable, Sendable {
    /// Left side.
    public var x: Double
    /// Upper side.
    public var y: Double
    /// Width; what overruns the right side is cut off.
    public var width: Double
    /// Height; what overruns the lower side is cut off.
    public var height: Double

    /// Takes the fractions as they are.
    public init(x: Double, y: Double, width: Double, height: Double) {
        self.x = x
        self.y = y
        self.width = width
        self.height = height
    }

    /// The whole image.
    public static let whole = UnitRect(x: 0, y: 0, width: 1, height: 1)

    /// Whether it has no area; by CGRectIsEmpty's rule that means "no crop".
    public var isEmpty: Bool { width == 0 || height == 0 }

    /// The pixels of an image of `size` that it covers: each number rounded down in single precision, as `floorf` on a
    /// CGRect does (0.29 of 100 is 29, not 28), clamped to the image, at least one pixel.
    public func pixels(of size: PixelSize) -> PixelRect {
        func span(_ start: Double, _ length: Double, of side: Int) -> (start: Int, length: Int) {
            let first = min(max(0, floored(start * Double(side))), side - 1)
            return (first, min(max(1, floored(length * Double(side))), side - first))
        }
        let (x, width) = span(self.x, self.width, of: size.width)
        let (y, height) = span(self.y, self.height, of: size.height)
        return PixelRect(x: x, y: y, width: width, height: height)
    }
}

/// Rounds down in single precision, which forgives the last bits that double arithmetic loses.
func floored(_ value: Double) -> Int { Int(Float(value).rounded(.down)) }

/// Rounds half away from zero, as C's `round` and UIKit do.
func rounded(_ value: Double) -> Int { Int(value.rounded(.toNearestOrAwayFromZero)) }
