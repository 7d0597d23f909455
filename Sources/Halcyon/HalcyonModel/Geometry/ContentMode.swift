/// How an image is placed in its display rectangle: UIKit's `UIView.ContentMode`, by name.
public enum ContentMode: String, CaseIterable, Codable, Sendable {
    /// Both sides are stretched to the display's.
    case scaleToFill
    /// The whole image inside the display; what is left over stays transparent.
    case scaleAspectFit
    /// The display is filled; what overhangs is cut off evenly.
    case scaleAspectFill
    /// In UIKit: draw again. For an image that is the same as ``scaleToFill``.
    case redraw
    /// Unscaled, in the middle; the other nine likewise, at the side or corner they name.
    case center
    case top, bottom, left, right, topLeft, topRight, bottomLeft, bottomRight

    /// The mode of this name, or of CSS' `object-fit` words `fill`, `contain` and `cover`.
    public init?(name: String) {
        switch name {
        case "fill": self = .scaleToFill
        case "contain": self = .scaleAspectFit
        case "cover": self = .scaleAspectFill
        default: self.init(rawValue: name)
        }
    }

    /// The nine that do not scale.
    public static let unscaled = allCases.filter { $0.alignment != nil }

    /// Where an unscaled image sits along one side of the display.
    enum Alignment { case leading, middle, trailing }

    /// Alignments across and down; nil for the modes that scale.
    var alignment: (x: Alignment, y: Alignment)? {
        switch self {
        case .scaleToFill, .scaleAspectFit, .scaleAspectFill, .redraw: nil
        case .center: (.middle, .middle)
        case .top: (.middle, .leading)
        case .bottom: (.middle, .trailing)
        case .left: (.leading, .middle)
        case .right: (.trailing, .middle)
        case .topLeft: (.leading, .leading)
        case .topRight: (.trailing, .leading)
        case .bottomLeft: (.leading, .trailing)
        case .bottomRight: (.trailing, .trailing)
        }
    }
}

/// What becomes of the excess when aspect ratios differ: `NINetworkImageViewScaleOptions`.
public enum ScaleOptions: String, CaseIterable, Codable, Sendable {
    /// Fitting leaves transparent excess, filling crops: the display size stands.
    case fitLeavesExcessAndFillCropsExcess
    /// Fitting shrinks the display to the image's aspect ratio.
    case fitCropsExcess
    /// Filling grows the display to the image's aspect ratio.
    case fillLeavesExcess
    /// Both.
    case fitCropsExcessAndFillLeavesExcess

    /// Whether `scaleAspectFit` shrinks the display.
    public var fitCrops: Bool { self == .fitCropsExcess || self == .fitCropsExcessAndFillLeavesExcess }
    /// Whether `scaleAspectFill` grows the display.
    public var fillLeaves: Bool { self == .fillLeavesExcess || self == .fitCropsExcessAndFillLeavesExcess }
}

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
