/// How an image is placed in its display: UIKit's content modes.
public enum ContentMode: String, Sendable, Codable, CaseIterable {
    /// The names of the job's schema.
    case scaleToFill, scaleAspectFit, scaleAspectFill, redraw, center, top, bottom, left, right
    case topLeft, topRight, bottomLeft, bottomRight
}

/// What becomes of the excess where aspect ratios differ.
public enum ScaleOptions: String, Sendable, Codable, CaseIterable {
    /// The names of the job's schema.
    case fitLeavesExcessAndFillCropsExcess, fitCropsExcess, fillLeavesExcess, fitCropsExcessAndFillLeavesExcess
}

/// How pixels are interpolated.
public enum InterpolationQuality: String, Sendable, Codable, CaseIterable {
    /// Nearest neighbour, linear, cubic, Lanczos.
    case none, low, medium, high
}

/// What of a damaged source is rendered all the same.
public enum Tolerance: String, Sendable, Codable, CaseIterable {
    /// Nothing; what there is of a JPEG, PNG or GIF that ends too early.
    case strict, truncated
}

/// The format of a file.
public enum ImageFormat: String, Sendable, Codable, CaseIterable {
    /// As the job's schema has them.
    case jpeg, png, webp, avif, gif, tiff, jxl
}

/// A part of an image, in fractions of its sides or in pixels, from the top left corner.
public struct CropRect: Sendable, Equatable, Codable {
    /// What the numbers of a rectangle count.
    public enum Unit: String, Sendable, Codable, CaseIterable {
        /// Shares of the sides, in 0…1; pixels of the upright image.
        case fractions, pixels
    }

    /// In the ``unit``.
    public var x, y, width, height: Double
    /// What they count; nil for fractions.
    public var unit: Unit?

    /// This part.
    public init(x: Double, y: Double, width: Double, height: Double, unit: Unit? = nil) {
        (self.x, self.y, self.width, self.height, self.unit) = (x, y, width, height, unit)
    }
}

/// Which part is kept where `scaleAspectFill` cuts.
public enum Gravity: Sendable, Equatable, Encodable {
    /// The middle; what draws the eye; where most is to be seen.
    case center, attention, entropy
    /// What lies around a point, in fractions of the sides of the image.
    case point(x: Double, y: Double)

    /// As a job has it.
    public func encode(to encoder: any Encoder) throws {
        let json: JSONValue =
            switch self {
            case .center: "center"
            case .attention: "attention"
            case .entropy: "entropy"
            case .point(let x, let y): ["x": .number(x), "y": .number(y)]
            }
        try json.encode(to: encoder)
    }
}

/// A rule for the size in place of width and height.
public enum Sizer: Sendable, Equatable, Encodable {
    /// The image's own size.
    case natural
    /// At most so many points along one side, the other in proportion.
    case aspectScaleDownByWidth(Double)
    /// See ``aspectScaleDownByWidth(_:)``.
    case aspectScaleDownByHeight(Double)

    /// As a job has it.
    public func encode(to encoder: any Encoder) throws {
        let json: JSONValue =
            switch self {
            case .natural: "natural"
            case .aspectScaleDownByWidth(let points): ["aspectScaleDownByWidth": .number(points)]
            case .aspectScaleDownByHeight(let points): ["aspectScaleDownByHeight": .number(points)]
            }
        try json.encode(to: encoder)
    }
}
