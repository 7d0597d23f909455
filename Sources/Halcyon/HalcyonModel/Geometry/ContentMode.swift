/// The placement of an image in its display rectangle, with the names of UIKit's `UIView.ContentMode`.
public enum ContentMode: String, CaseIterable, Codable, Sendable {
    /// Stretches both sides to the display's.
    case scaleToFill
    /// Fits the whole image inside the display. The remaining area stays transparent.
    case scaleAspectFit
    /// Fills the display and crops the excess evenly.
    case scaleAspectFill
    /// The same as ``scaleToFill`` for images. In UIKit it redraws the view.
    case redraw
    /// Centers the unscaled image. The following modes place it at the side or corner that they name.
    case center
    case top, bottom, left, right, topLeft, topRight, bottomLeft, bottomRight

    /// Creates the mode with this name, or with the CSS `object-fit` value `fill`, `contain` or `cover`.
    public init?(name: String) {
        switch name {
        case "fill": self = .scaleToFill
        case "contain": self = .scaleAspectFit
        case "cover": self = .scaleAspectFill
        default: self.init(rawValue: name)
        }
    }

    /// The nine modes that do not scale the image.
    public static let unscaled = allCases.filter { $0.alignment != nil }

    /// The alignment of an unscaled image along one axis of the display.
    enum Alignment { case leading, middle, trailing }

    /// The horizontal and vertical alignment; nil for the modes that scale.
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

/// The treatment of excess if aspect ratios differ, as Nimbus' `NINetworkImageViewScaleOptions`.
public enum ScaleOptions: String, CaseIterable, Codable, Sendable {
    /// Fitting leaves transparent excess and filling crops. The output has the display's size.
    case fitLeavesExcessAndFillCropsExcess
    /// Fitting shrinks the display to the image's aspect ratio.
    case fitCropsExcess
    /// Filling grows the display to the image's aspect ratio.
    case fillLeavesExcess
    /// Fitting shrinks and filling grows the display to the image's aspect ratio.
    case fitCropsExcessAndFillLeavesExcess

    /// True if `scaleAspectFit` shrinks the display.
    public var fitCrops: Bool { self == .fitCropsExcess || self == .fitCropsExcessAndFillLeavesExcess }
    /// True if `scaleAspectFill` grows the display.
    public var fillLeaves: Bool { self == .fillLeavesExcess || self == .fitCropsExcessAndFillLeavesExcess }
}

/// The part of the image that `scaleAspectFill` retains when it crops.
public enum Gravity: Hashable, Codable, Sendable {
    /// The center, as in UIKit.
    case center
    /// The part that attracts attention: edges, skin and saturated colors (libvips' `smartcrop`).
    case attention
    /// The part with the highest entropy.
    case entropy
    /// The part around this point, as far as the edges allow.
    case focalPoint(UnitPoint)

    /// True if the part depends on the pixels.
    public var needsPixels: Bool { self == .attention || self == .entropy }
}

/// A point of an image in fractions of its sides, from the top left corner, each 0 to 1.
public struct UnitPoint: Hashable, Codable, Sendable {
    /// The distance from the left side.
    public var x: Double
    /// The distance from the top.
    public var y: Double

    /// Creates a point from fractions of the image's width and height.
    public init(x: Double, y: Double) {
        self.x = x
        self.y = y
    }

    /// The center of the image.
    public static let center = UnitPoint(x: 0.5, y: 0.5)
}
