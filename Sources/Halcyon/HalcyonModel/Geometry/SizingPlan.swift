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
