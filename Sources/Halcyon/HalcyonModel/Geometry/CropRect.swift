/// A part of an image, in fractions of its sides, as `contentsRect` in Core Animation, or in pixels. The origin is the
/// top left corner.
public struct CropRect: Hashable, Codable, Sendable {
    /// The unit of a rectangle.
    public enum Unit: String, Hashable, Codable, Sendable, CaseIterable {
        /// Fractions of the image's width and height; `x` and `y` are in 0..<1.
        case fractions
        /// Pixels of the auto-rotated image.
        case pixels
    }

    /// The left side.
    public var x: Double
    /// The upper side.
    public var y: Double
    /// The width, clipped at the right side of the image.
    public var width: Double
    /// The height, clipped at the lower side of the image.
    public var height: Double
    /// The unit of the four numbers.
    public var unit: Unit

    /// Creates a rectangle without validating the numbers.
    public init(x: Double, y: Double, width: Double, height: Double, unit: Unit = .fractions) {
        self.x = x
        self.y = y
        self.width = width
        self.height = height
        self.unit = unit
    }

    /// The whole image.
    public static let whole = CropRect(x: 0, y: 0, width: 1, height: 1)

    /// True if the rectangle has no area, as `CGRectIsEmpty`. An empty rectangle means no crop.
    public var isEmpty: Bool { width == 0 || height == 0 }

    /// Returns the covered pixels of an image of `size`. Each number is rounded down, with a tolerance of a
    /// ten-thousandth of a pixel, and clamped to the image. The result has at least one pixel.
    ///
    /// - Throws: ``JobError`` `invalid_job` if the origin, given in pixels, lies outside the image.
    public func pixels(of size: PixelSize) throws(JobError) -> PixelRect {
        func span(_ start: Double, _ length: Double, of side: Int) throws(JobError) -> (start: Int, length: Int) {
            let scale = unit == .pixels ? 1 : Double(side)
            let first = max(0, floored(start * scale))
            guard unit == .fractions || first < side else {
                throw JobError(
                    .invalidJob, "cropRect: lies outside the image, which has \(size.width)×\(size.height) pixels")
            }
            let start = min(first, side - 1)
            return (start, min(max(1, floored(length * scale)), side - start))
        }
        let (x, width) = try span(self.x, self.width, of: size.width)
        let (y, height) = try span(self.y, self.height, of: size.height)
        return PixelRect(x: x, y: y, width: width, height: height)
    }
}

/// The detection of margins around an image, which are removed before it is sized.
public struct Trim: Hashable, Codable, Sendable {
    /// The distance from the background up to which a pixel belongs to the margin, in levels of 255, for each channel.
    public var tolerance: Int
    /// The color of the margin; nil for that of the pixel in the top left corner.
    public var background: CSSColor?
    /// The share of the pixels of a row or a column, 0 to 0.5, that may differ from the background in a margin, such as
    /// dust on a scan.
    public var fuzz: Double

    /// The default of ``tolerance``.
    public static let defaultTolerance = 10

    /// Creates parameters for trimming.
    public init(tolerance: Int = Self.defaultTolerance, background: CSSColor? = nil, fuzz: Double = 0) {
        self.tolerance = tolerance
        self.background = background
        self.fuzz = fuzz
    }
}
