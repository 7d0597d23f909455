/// What size a variant gets: a crop of the source, and a rule for the rest.
public struct Sizing: Hashable, Codable, Sendable {
    /// The rule for the size of the output.
    public enum Goal: Hashable, Codable, Sendable {
        /// A display rectangle of width and height.
        case display(Display)
        /// Width or height in points, the other side in proportion; or the natural size.
        case sizer(Sizer)
        /// A sizer that was registered by name.
        case custom(CustomRule)
        /// The (cropped) original size, by `sizeForDisplay: false`.
        case original
    }

    /// The rule.
    public var goal: Goal
    /// The part of the auto-rotated source that is used at all.
    public var cropRect: CropRect
    /// Pixels a point, 1 to 4.
    public var screenScale: Double
    /// Which part `scaleAspectFill` keeps.
    public var gravity: Gravity
    /// Whether the output may show pixels of the source enlarged; nil for what the goal does by itself: a display does, a sizer
    /// does not.
    public var upscale: Bool?

    /// Takes the values as they are.
    public init(
        goal: Goal, cropRect: CropRect = .whole, screenScale: Double = 1, gravity: Gravity = .center,
        upscale: Bool? = nil
    ) {
        self.goal = goal
        self.cropRect = cropRect
        self.screenScale = screenScale
        self.gravity = gravity
        self.upscale = upscale
    }

    /// Whether ``gravity`` has any influence.
    public var isCutByGravity: Bool {
        guard case .display(let display) = goal else { return false }
        return display.contentMode == .scaleAspectFill && !display.scaleOptions.fillLeaves
    }

    /// The part of a source of `source` pixels that is used, after auto-rotation.
    ///
    /// - Throws: ``Failure`` `invalid_job` where that is nothing.
    public func crop(of source: PixelSize) throws(Failure) -> PixelRect {
        cropRect.isEmpty ? PixelRect(source) : try cropRect.pixels(of: source)
    }

    /// The pixels of an output for a source of `source` pixels, after auto-rotation.
    ///
    /// - Parameters:
    ///   - source: its size in pixels.
    ///   - focus: where the pixels say that the eye is drawn, in fractions of the source; nil for what ``gravity`` says without
    ///     them.
    ///   - custom: what a registered sizer makes of the size of the crop; its plan counts from the crop's corner.
    /// - Throws: what `custom` throws; without one, ``Failure`` `invalid_job` for every registered sizer. The same for a crop
    ///   outside the source.
    public func plan(
        for source: PixelSize, focus: UnitPoint? = nil,
        custom: (CustomRule, PixelSize) throws(Failure) -> SizingPlan = { rule, _ throws(Failure) in
            throw Failure(.invalidJob, "sizer: nothing is registered as \(rule.name)")
        }
    ) throws(Failure) -> SizingPlan {
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
        guard upscale == false else { return plan.scaled(by: screenScale) }
        // The display shrinks in proportion until no pixel is enlarged.
        let enlarged = max(
            Double(plan.destRect.width) / Double(plan.sourceRect.width),
            Double(plan.destRect.height) / Double(plan.sourceRect.height))
        return plan.scaled(by: min(screenScale, 1 / enlarged))
    }

    /// The point that is kept, from fractions of the source to fractions of the crop.
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

/// The geometry of one rendering, in whole pixels: `sourceRect` of the auto-rotated source is scaled to the size of
/// `destRect` and lies there on a canvas of `outputSize`.
public struct SizingPlan: Hashable, Sendable {
    /// The part of the auto-rotated source that is used.
    public var sourceRect: PixelRect
    /// The canvas.
    public var outputSize: PixelSize
    /// Where the part lands on the canvas.
    public var destRect: PixelRect

    /// Takes the values as they are.
    public init(sourceRect: PixelRect, outputSize: PixelSize, destRect: PixelRect) {
        self.sourceRect = sourceRect
        self.outputSize = outputSize
        self.destRect = destRect
    }

    /// The whole of an image, scaled to the whole of the output.
    public init(scaling image: PixelSize, to output: PixelSize) {
        self.init(sourceRect: PixelRect(image), outputSize: output, destRect: PixelRect(output))
    }

    /// Whether the image does not cover the whole output.
    public var leavesExcess: Bool { destRect != PixelRect(outputSize) }

    /// From points to pixels: the output grows, the part of the source stays.
    func scaled(by scale: Double) -> SizingPlan {
        func scaled(_ points: Int) -> Int { rounded(Double(points) * scale) }
        let (x, y) = (scaled(destRect.x), scaled(destRect.y))
        var plan = self
        plan.outputSize = PixelSize(width: scaled(outputSize.width), height: scaled(outputSize.height))
        // Sides are rounded, not lengths: neighbours stay neighbours when a scale such as 1.5 does not come out even.
        plan.destRect = PixelRect(
            x: x, y: y, width: scaled(destRect.x + destRect.width) - x, height: scaled(destRect.y + destRect.height) - y
        )
        return plan
    }
}

/// A rule that gives an image its size when no display rectangle is named.
public enum Sizer: Hashable, Codable, Sendable {
    /// The image's own size.
    case natural
    /// At most this many pixels across, the height in proportion; enlarged only with `upscale`.
    case aspectScaleDownByWidth(Double)
    /// At most this many pixels down, the width in proportion; enlarged only with `upscale`.
    case aspectScaleDownByHeight(Double)

    /// The size of the output in pixels: each side rounded once, half away from zero, never below 1.
    /// - Parameters:
    ///   - image: the size of the image, or of what is left of it by a crop.
    ///   - upscale: whether an image smaller than the limit grows to it.
    public func size(of image: PixelSize, upscale: Bool = false) -> PixelSize {
        let factor =
            switch self {
            case .natural: 1.0
            case .aspectScaleDownByWidth(let limit): limit / Double(image.width)
            case .aspectScaleDownByHeight(let limit): limit / Double(image.height)
            }
        return factor < 1 || upscale ? image.scaled(by: factor) : image
    }
}

/// How the processor `resize` treats the aspect ratio (Kingfisher's `ResizingImageProcessor`).
public enum ResizeMode: String, CaseIterable, Codable, Sendable {
    /// The target size as it is.
    case none
    /// As large as fits inside the target.
    case aspectFit
    /// As small as covers the target.
    case aspectFill

    /// The size in pixels that `image` gets for `target`; it may grow.
    public func size(of image: PixelSize, into target: PixelSize) -> PixelSize {
        let across = Double(target.width) / Double(image.width)
        let down = Double(target.height) / Double(image.height)
        return switch self {
        case .none: target
        case .aspectFit: image.scaled(by: min(across, down))
        case .aspectFill: image.scaled(by: max(across, down))
        }
    }
}

extension PixelSize {
    /// Scaled in proportion.
    fileprivate func scaled(by factor: Double) -> PixelSize {
        PixelSize(width: rounded(Double(width) * factor), height: rounded(Double(height) * factor))
    }
}

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
