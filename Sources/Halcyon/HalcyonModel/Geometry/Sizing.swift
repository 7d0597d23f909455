/// What size a variant gets: a crop of the source, and a rule for the rest.
public struct Sizing: Hashable, Sendable {
    /// The rule for the size of the output.
    public enum Goal: Hashable, Sendable {
        /// A display rectangle of width and height.
        case display(Display)
        /// Width or height in points, the other side in proportion, never enlarged; or the natural size.
        case sizer(Sizer)
        /// The (cropped) original size, by `sizeForDisplay: false`.
        case original
    }

    /// The rule.
    public var goal: Goal
    /// The part of the auto-rotated source that is used at all.
    public var cropRect: UnitRect
    /// Pixels a point, 1 to 4.
    public var screenScale: Double

    /// Takes the values as they are.
    public init(goal: Goal, cropRect: UnitRect = .whole, screenScale: Double = 1) {
        self.goal = goal
        self.cropRect = cropRect
        self.screenScale = screenScale
    }

    /// The pixels of an output for a source of `source` pixels, after auto-rotation.
    public func plan(for source: PixelSize) -> SizingPlan {
        let crop = cropRect.isEmpty ? PixelRect(source) : cropRect.pixels(of: source)
        var plan =
            switch goal {
            case .display(let display): display.place(crop.size).scaled(by: screenScale)
            case .sizer(let sizer): SizingPlan(scaling: crop.size, to: sizer.size(of: crop.size))
            case .original: SizingPlan(scaling: crop.size, to: crop.size)
            }
        plan.sourceRect.x += crop.x
        plan.sourceRect.y += crop.y
        return plan
    }
}

/// The geometry of one rendering, in whole pixels: `sourceRect` of the auto-rotated source is scaled to the size of
/// `destRect` and lies there on a transparent canvas of `outputSize`.
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
