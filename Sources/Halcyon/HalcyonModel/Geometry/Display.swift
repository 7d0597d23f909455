/// A display rectangle and the placement of an image in it.
///
/// The geometry is that of Nimbus' `NINetworkImageView` with three defects corrected: the vertical center is computed
/// from the height, a source smaller than the display is not stretched by unscaled modes, and no side becomes empty.
public struct Display: Hashable, Codable, Sendable {
    /// The width in points, above 0.
    public var width: Double
    /// The height in points, above 0.
    public var height: Double
    /// The placement of the image.
    public var contentMode: ContentMode
    /// The treatment of excess.
    public var scaleOptions: ScaleOptions
    /// The position of an image that ``ContentMode/scaleAspectFit`` places on a display of another aspect ratio, one of
    /// the nine unscaled content modes.
    public var position: ContentMode

    /// Creates a display rectangle without validating its size.
    public init(
        width: Double, height: Double, contentMode: ContentMode = .scaleAspectFill,
        scaleOptions: ScaleOptions = .fitLeavesExcessAndFillCropsExcess, position: ContentMode = .center
    ) {
        self.width = width
        self.height = height
        self.contentMode = contentMode
        self.scaleOptions = scaleOptions
        self.position = position
    }

    /// Places an image of `image` pixels on the display, at one pixel per point.
    ///
    /// - Parameter focus: The point that `scaleAspectFill` places as close to the center as possible.
    /// - Returns: The visible part of the image, the canvas, and the position of the part on the canvas.
    func place(_ image: PixelSize, focus: UnitPoint = .center) -> SizingPlan {
        let display = adjusted(to: image)
        let canvas = PixelSize(width: rounded(display.width), height: rounded(display.height))
        let whole = PixelRect(image)
        if let alignment = contentMode.alignment {
            let x = Span.placed(image.width, display.width, canvas.width, alignment.x, restAtStart: false)
            let y = Span.placed(image.height, display.height, canvas.height, alignment.y, restAtStart: true)
            return SizingPlan(
                sourceRect: PixelRect(x: x.source, y: y.source, width: x.length, height: y.length),
                outputSize: canvas,
                destRect: PixelRect(x: x.dest, y: y.dest, width: x.length, height: y.length))
        }
        switch contentMode {
        case .scaleAspectFill:
            return SizingPlan(
                sourceRect: display.rectFilling(from: image, around: focus), outputSize: canvas,
                destRect: PixelRect(canvas))
        case .scaleAspectFit where !scaleOptions.fitCrops:
            return SizingPlan(
                sourceRect: whole, outputSize: canvas, destRect: display.rectFitting(image, on: canvas))
        default:
            return SizingPlan(sourceRect: whole, outputSize: canvas, destRect: PixelRect(canvas))
        }
    }

    /// Returns the display, changed to the image's aspect ratio if the mode and the options require it.
    private func adjusted(to image: PixelSize) -> Display {
        let covering: Bool
        switch contentMode {
        case .scaleAspectFit where scaleOptions.fitCrops: covering = false
        case .scaleAspectFill where scaleOptions.fillLeaves: covering = true
        default: return self
        }
        var display = self
        (display.width, display.height) = scaledSides(image.sides, into: (width, height), covering: covering)
        return display
    }

    /// Returns the largest part of the image around the focus that has the display's aspect ratio.
    private func rectFilling(from image: PixelSize, around focus: UnitPoint) -> PixelRect {
        let part = scaledSides((width, height), into: image.sides)
        func span(_ side: Int, _ length: Double, around focus: Double) -> (start: Int, length: Int) {
            let overhang = max(0, Double(side) - length)
            let start = floored(min(max(0, focus * Double(side) - length / 2), overhang))
            return (start, min(max(1, rounded(length)), side - start))
        }
        let (x, across) = span(image.width, part.width, around: focus.x)
        let (y, down) = span(image.height, part.height, around: focus.y)
        return PixelRect(x: x, y: y, width: across, height: down)
    }

    /// Returns the rectangle of the whole image, scaled to fit inside the canvas.
    private func rectFitting(_ image: PixelSize, on canvas: PixelSize) -> PixelRect {
        let (across, down) = scaledSides(image.sides, into: (width, height))
        let size = PixelSize(width: min(rounded(across), canvas.width), height: min(rounded(down), canvas.height))
        // Core Graphics has its origin at the bottom, so an odd row of excess is above the image.
        let below = max(0, floored((height - down) / 2))
        let alignment = position.alignment ?? (.middle, .middle)
        let x =
            alignment.x == .middle
            ? min(max(0, floored((width - across) / 2)), canvas.width - size.width)
            : alignment.x.start(of: size.width, in: canvas.width)
        let y =
            alignment.y == .middle
            ? max(0, canvas.height - below - size.height) : alignment.y.start(of: size.height, in: canvas.height)
        return PixelRect(x: x, y: y, width: size.width, height: size.height)
    }
}

/// The placement of an unscaled image along one axis.
private struct Span {
    let source: Int
    let dest: Int
    let length: Int

    /// Places an image along one axis.
    /// - Parameter restAtStart: True if the odd pixel of the excess of a centered image goes before it (rows, which
    ///   Core Graphics counts from the bottom), false if it goes after it (columns).
    static func placed(
        _ image: Int, _ display: Double, _ canvas: Int, _ alignment: ContentMode.Alignment, restAtStart: Bool
    ) -> Span {
        let length = min(canvas, image)
        let hidden = max(0, Double(image) - display)
        let excess = canvas - length
        let half = restAtStart ? excess - excess / 2 : excess / 2
        let (source, dest) =
            switch alignment {
            case .leading: (0, 0)
            case .middle: (floored(hidden / 2), half)
            case .trailing: (floored(hidden), excess)
            }
        return Span(source: min(source, image - length), dest: dest, length: length)
    }
}
