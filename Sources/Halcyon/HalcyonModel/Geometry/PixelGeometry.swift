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

/// Rounds down, and takes what lies less than a ten-thousandth of a pixel below a whole number for that number: a pixel's place
/// comes back from a fraction of the side, whatever the last bits of doubles, or of most floats, have lost (0.29 of 100 is 29).
func floored(_ value: Double) -> Int { Int((value + 0.0001).rounded(.down)) }

/// Rounds half away from zero, as C's `round` and UIKit do.
func rounded(_ value: Double) -> Int { Int(value.rounded(.toNearestOrAwayFromZero)) }
