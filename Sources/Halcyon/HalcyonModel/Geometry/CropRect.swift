/// A part of an image: in fractions of its sides, as UIKit's `contentsRect`, or in pixels. The origin is the top left corner.
public struct CropRect: Hashable, Codable, Sendable {
    /// What the numbers count.
    public enum Unit: String, Hashable, Codable, Sendable, CaseIterable {
        /// Shares of the image's width and height: `x` and `y` in 0..<1.
        case fractions
        /// Pixels of the auto-rotated image.
        case pixels
    }

    /// Left side.
    public var x: Double
    /// Upper side.
    public var y: Double
    /// Width; what overruns the right side is cut off.
    public var width: Double
    /// Height; what overruns the lower side is cut off.
    public var height: Double
    /// What these four count.
    public var unit: Unit

    /// Takes the numbers as they are.
    public init(x: Double, y: Double, width: Double, height: Double, unit: Unit = .fractions) {
        self.x = x
        self.y = y
        self.width = width
        self.height = height
        self.unit = unit
    }

    /// The whole image.
    public static let whole = CropRect(x: 0, y: 0, width: 1, height: 1)

    /// Whether it has no area; by CGRectIsEmpty's rule that means "no crop".
    public var isEmpty: Bool { width == 0 || height == 0 }

    /// The pixels of an image of `size` that it covers: each number in pixels, rounded down as `floorf` does on a CGRect but
    /// forgiving a ten-thousandth of a pixel, clamped to the image, at least one pixel.
    ///
    /// - Throws: ``Failure`` `invalid_job` where its corner lies outside the image, which pixels alone may.
    public func pixels(of size: PixelSize) throws(Failure) -> PixelRect {
        func span(_ start: Double, _ length: Double, of side: Int) throws(Failure) -> (start: Int, length: Int) {
            let scale = unit == .pixels ? 1 : Double(side)
            let first = max(0, floored(start * scale))
            guard unit == .fractions || first < side else {
                throw Failure(
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
