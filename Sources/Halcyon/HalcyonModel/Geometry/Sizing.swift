/// The sizing of a variant: a crop of the source, and a rule for the output size.
public struct Sizing: Hashable, Codable, Sendable {
    /// The rule for the size of the output.
    public enum Goal: Hashable, Codable, Sendable {
        /// A display rectangle of width and height.
        case display(Display)
        /// A width or a height with the other side in proportion, or the natural size.
        case sizer(Sizer)
        /// A sizer that was registered by name.
        case custom(CustomExtension)
        /// The original size after cropping, requested by `sizeForDisplay: false`.
        case original
    }

    /// The rule for the size of the output.
    public var goal: Goal
    /// The part of the auto-rotated source that is used.
    public var cropRect: CropRect
    /// The detection of margins inside ``cropRect``, which are removed; nil to keep them.
    public var trim: Trim?
    /// The number of pixels per point, 1 to 4.
    public var screenScale: Double
    /// The part that `scaleAspectFill` retains.
    public var gravity: Gravity
    /// True if the source may be enlarged; nil for the default of the goal: displays enlarge, sizers do not.
    public var upscale: Bool?

    /// Creates a sizing without validating the values.
    public init(
        goal: Goal, cropRect: CropRect = .whole, trim: Trim? = nil, screenScale: Double = 1, gravity: Gravity = .center,
        upscale: Bool? = nil
    ) {
        self.goal = goal
        self.cropRect = cropRect
        self.trim = trim
        self.screenScale = screenScale
        self.gravity = gravity
        self.upscale = upscale
    }

    /// True if ``gravity`` affects the output.
    public var isCutByGravity: Bool {
        guard case .display(let display) = goal else { return false }
        return display.contentMode == .scaleAspectFill && !display.scaleOptions.fillLeaves
    }

    /// Returns the used part of an auto-rotated source of `source` pixels.
    ///
    /// - Throws: ``JobError`` `invalid_job` if ``cropRect`` lies outside the source.
    public func crop(of source: PixelSize) throws(JobError) -> PixelRect {
        cropRect.isEmpty ? PixelRect(source) : try cropRect.pixels(of: source)
    }

    /// Computes the geometry of an output.
    ///
    /// - Parameters:
    ///   - source: The size of the auto-rotated source in pixels.
    ///   - focus: The focal point found in the pixels, in fractions of the source; nil to use the point of ``gravity``.
    ///   - custom: A function that applies a registered sizer to the size of the crop. Its plan is relative to the
    ///     crop's origin.
    /// - Throws: ``JobError`` `invalid_job` if the crop lies outside the source or no function is given for a
    ///   registered sizer. Errors of `custom` are rethrown.
    public func plan(
        for source: PixelSize, focus: UnitPoint? = nil,
        custom: (CustomExtension, PixelSize) throws(JobError) -> SizingPlan = { rule, _ throws(JobError) in
            throw JobError(.invalidJob, "sizer: nothing is registered as \(rule.name)")
        }
    ) throws(JobError) -> SizingPlan {
        let crop = try crop(of: source)
        var plan =
            switch goal {
            case .display(let display): place(crop, of: source, on: display, focus)
            case .sizer(let sizer):
                SizingPlan(scaling: crop.size, to: sizer.size(of: crop.size, upscale: upscale ?? false))
            case .custom(let rule): try custom(rule, crop.size)
            case .original: SizingPlan(scaling: crop.size, to: crop.size)
            }
        plan.sourceRect.x += crop.x
        plan.sourceRect.y += crop.y
        return plan
    }

    private func place(
        _ crop: PixelRect, of source: PixelSize, on display: Display, _ focus: UnitPoint?
    ) -> SizingPlan {
        let plan = display.place(crop.size, focus: self.focus(focus, in: crop, of: source))
        let (from, to) = (plan.sourceRect, plan.destRect)
        // The axis along which the source is enlarged most.
        let isHorizontal = to.width * from.height >= to.height * from.width
        let (pixels, points) = isHorizontal ? (from.width, to.width) : (from.height, to.height)
        guard upscale == false, Double(pixels) < screenScale * Double(points) else {
            return plan.scaled(by: screenScale)
        }
        // The display shrinks in proportion until the source is not enlarged.
        return plan.scaled(by: Double(pixels), per: Double(points))
    }

    /// Converts the focal point from fractions of the source to fractions of the crop.
    private func focus(_ found: UnitPoint?, in crop: PixelRect, of source: PixelSize) -> UnitPoint {
        let point: UnitPoint
        if let found {
            point = found
        } else if case .focalPoint(let given) = gravity {
            point = given
        } else {
            return .center
        }
        return UnitPoint(
            x: (point.x * Double(source.width) - Double(crop.x)) / Double(crop.width),
            y: (point.y * Double(source.height) - Double(crop.y)) / Double(crop.height))
    }
}

/// The geometry of a rendering in whole pixels. The `sourceRect` of the auto-rotated source is scaled to `destRect` on
/// a canvas of `outputSize`.
public struct SizingPlan: Hashable, Sendable {
    /// The part of the auto-rotated source that is used.
    public var sourceRect: PixelRect
    /// The size of the canvas.
    public var outputSize: PixelSize
    /// The rectangle of the part on the canvas.
    public var destRect: PixelRect

    /// Creates a plan.
    public init(sourceRect: PixelRect, outputSize: PixelSize, destRect: PixelRect) {
        self.sourceRect = sourceRect
        self.outputSize = outputSize
        self.destRect = destRect
    }

    /// Creates a plan that scales a whole image to the whole output.
    public init(scaling image: PixelSize, to output: PixelSize) {
        self.init(sourceRect: PixelRect(image), outputSize: output, destRect: PixelRect(output))
    }

    /// True if the image does not cover the whole output.
    public var leavesExcess: Bool { destRect != PixelRect(outputSize) }

    /// Returns the plan with the output scaled from points to pixels. The part of the source is unchanged.
    ///
    /// - Parameters:
    ///   - scale: The number of pixels for `points` points.
    ///   - points: A number of points. The product precedes the quotient, so that exact halves are not lost.
    func scaled(by scale: Double, per points: Double = 1) -> SizingPlan {
        func scaled(_ length: Int) -> Int { rounded(Double(length) * scale / points) }
        let (x, y) = (scaled(destRect.x), scaled(destRect.y))
        var plan = self
        plan.outputSize = PixelSize(width: scaled(outputSize.width), height: scaled(outputSize.height))
        // Sides are rounded instead of lengths, so that adjacent rectangles stay adjacent with scales such as 1.5.
        plan.destRect = PixelRect(
            x: x, y: y, width: scaled(destRect.x + destRect.width) - x, height: scaled(destRect.y + destRect.height) - y
        )
        return plan
    }
}

/// A rule for the size of an image without a display rectangle.
public enum Sizer: Hashable, Codable, Sendable {
    /// The original size of the image.
    case natural
    /// A maximum width in pixels, with the height in proportion. Images are enlarged only with `upscale`.
    case aspectScaleDownByWidth(Double)
    /// A maximum height in pixels, with the width in proportion. Images are enlarged only with `upscale`.
    case aspectScaleDownByHeight(Double)

    /// Returns the size of the output in pixels. Each side is rounded once, half away from zero, and at least 1.
    /// - Parameters:
    ///   - image: The size of the image after cropping.
    ///   - upscale: True if an image smaller than the limit is enlarged to it.
    public func size(of image: PixelSize, upscale: Bool = false) -> PixelSize {
        switch self {
        case .natural: image
        case .aspectScaleDownByWidth(let limit):
            limit < Double(image.width) || upscale ? image.scaled(into: (limit, .infinity)) : image
        case .aspectScaleDownByHeight(let limit):
            limit < Double(image.height) || upscale ? image.scaled(into: (.infinity, limit)) : image
        }
    }
}

/// The treatment of the aspect ratio by the processor `resize`, as Kingfisher's `ResizingImageProcessor`.
public enum ResizeMode: String, CaseIterable, Codable, Sendable {
    /// Uses exactly the target size.
    case none
    /// Fits inside the target.
    case aspectFit
    /// Covers the target.
    case aspectFill

    /// Returns the size in pixels of `image`, resized to `target`. It may be enlarged.
    public func size(of image: PixelSize, into target: PixelSize) -> PixelSize {
        switch self {
        case .none: target
        case .aspectFit: image.scaled(into: target.sides)
        case .aspectFill: image.scaled(into: target.sides, covering: true)
        }
    }
}

extension PixelSize {
    /// The width and the height.
    var sides: (width: Double, height: Double) { (Double(width), Double(height)) }

    /// Returns the size, scaled in proportion to a box as by ``scaledSides(_:into:covering:)``, and rounded.
    fileprivate func scaled(into box: (width: Double, height: Double), covering: Bool = false) -> PixelSize {
        let scaled = scaledSides(sides, into: box, covering: covering)
        return PixelSize(width: rounded(scaled.width), height: rounded(scaled.height))
    }
}

/// Scales a rectangle in proportion, to the largest one inside a box or to the smallest one that covers it.
///
/// One side of the result is exactly that of the box. For the other one, the product precedes the quotient, so that a
/// length of exactly half a pixel is not rounded down.
///
/// - Parameters:
///   - sides: The sides of the rectangle, above 0.
///   - box: The sides of the box, above 0. At most one is infinite.
///   - covering: True if the result covers the box.
func scaledSides(
    _ sides: (width: Double, height: Double), into box: (width: Double, height: Double), covering: Bool = false
) -> (width: Double, height: Double) {
    let (width, height) = (sides.width * box.height / sides.height, sides.height * box.width / sides.width)
    // Of the same aspect ratio, although a quotient may be rounded.
    if width == box.width || height == box.height { return box }
    return (height < box.height) != covering ? (box.width, height) : (width, box.height)
}

/// A size in whole pixels, at least 1×1.
public struct PixelSize: Hashable, Codable, Sendable {
    /// The width in pixels.
    public var width: Int
    /// The height in pixels.
    public var height: Int

    /// Creates a size. Sides below 1 become 1.
    public init(width: Int, height: Int) {
        self.width = max(1, width)
        self.height = max(1, height)
    }

    /// The number of pixels: width times height.
    public var pixels: Int { width * height }
}

/// A rectangle in whole pixels. The origin is the top left corner; x increases to the right and y downward.
public struct PixelRect: Hashable, Codable, Sendable {
    /// The distance of the left side from the image's left side.
    public var x: Int
    /// The distance of the upper side from the image's upper side.
    public var y: Int
    /// The width in pixels, at least 1.
    public var width: Int
    /// The height in pixels, at least 1.
    public var height: Int

    /// Creates a rectangle. Sides below 1 become 1.
    public init(x: Int, y: Int, width: Int, height: Int) {
        self.x = x
        self.y = y
        self.width = max(1, width)
        self.height = max(1, height)
    }

    /// Creates a rectangle that covers a whole image.
    public init(_ size: PixelSize) {
        self.init(x: 0, y: 0, width: size.width, height: size.height)
    }

    /// The width and height.
    public var size: PixelSize { PixelSize(width: width, height: height) }
}

/// Rounds down with a tolerance of a ten-thousandth. A pixel position that was converted to a fraction of the side is
/// recovered despite floating-point errors (0.29 of 100 is 29).
func floored(_ value: Double) -> Int { Int((value + 0.0001).rounded(.down)) }

/// Rounds half away from zero, as `round` in C and UIKit.
func rounded(_ value: Double) -> Int { Int(value.rounded(.toNearestOrAwayFromZero)) }
