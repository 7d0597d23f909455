/// Which part of the image `scaleAspectFill` keeps when it has to cut.
public enum Gravity: Hashable, Codable, Sendable {
    /// The middle, as UIKit does.
    case center
    /// What draws the eye: edges, skin and saturated colours (libvips' `smartcrop`).
    case attention
    /// Where most is to be seen: the part of highest entropy.
    case entropy
    /// As near to this point as the edges allow.
    case focalPoint(UnitPoint)

    /// Whether the pixels decide.
    public var needsPixels: Bool { self == .attention || self == .entropy }
}

/// A point of an image in fractions of its sides, from the top left corner, each 0 to 1.
public struct UnitPoint: Hashable, Codable, Sendable {
    /// From the left.
    public var x: Double
    /// From the top.
    public var y: Double

    /// Takes the fractions as they are.
    public init(x: Double, y: Double) {
        self.x = x
        self.y = y
    }

    /// The middle.
    public static let center = UnitPoint(x: 0.5, y: 0.5)
}
