/// A display rectangle and the way an image is placed in it.
///
/// The geometry of Nimbus' NINetworkImageView with its defects corrected: the vertical middle is taken from the height, a
/// source smaller than the display is placed and not stretched, and no side becomes empty.
public struct Display: Hashable, Codable, Sendable {
    /// Points across, above 0.
    public var width: Double
    /// Points down, above 0.
    public var height: Double
    /// How the image is placed.
    public var contentMode: ContentMode
    /// What becomes of excess.
    public var scaleOptions: ScaleOptions

    /// Takes the values as they are.
    public init(
        width: Double, height: Double, contentMode: ContentMode = .scaleAspectFill,
        scaleOptions: ScaleOptions = .fitLeavesExcessAndFillCropsExcess
    ) {
        self.width = width
        self.height = height
        self.contentMode = contentMode
        self.scaleOptions = scaleOptions
    }

    /// Places an image of `image` pixels at one pixel a point: the part of it that is seen, the canvas, and where the part
    /// lands on it.
    ///
    /// - Parameter focus: what `scaleAspectFill` keeps as near to the middle as it can.
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
        case .scaleAspectFit:
            return SizingPlan(
                sourceRect: whole, outputSize: canvas, destRect: display.rectFitting(image, on: canvas))
        default:
            return SizingPlan(sourceRect: whole, outputSize: canvas, destRect: PixelRect(canvas))
        }
    }

    /// The display with its aspect ratio made the image's, where mode and options ask for that.
    private func adjusted(to image: PixelSize) -> Display {
        let scale: Double
        let across = width / Double(image.width)
        let down = height / Double(image.height)
        switch contentMode {
        case .scaleAspectFit where scaleOptions.fitCrops: scale = min(across, down)
        case .scaleAspectFill where scaleOptions.fillLeaves: scale = max(across, down)
        default: return self
        }
        // The side that decides keeps its exact length.
        var display = self
        if scale != across { display.width = Double(image.width) * scale }
        if scale != down { display.height = Double(image.height) * scale }
        return display
    }

    /// The largest part of the image around the focus with the display's aspect ratio.
    private func rectFilling(from image: PixelSize, around focus: UnitPoint) -> PixelRect {
        let scale = min(Double(image.width) / width, Double(image.height) / height)
        func span(_ side: Int, _ length: Double, around focus: Double) -> (start: Int, length: Int) {
            let overhang = max(0, Double(side) - length)
            let start = floored(min(max(0, focus * Double(side) - length / 2), overhang))
            return (start, min(max(1, rounded(length)), side - start))
        }
        let (x, across) = span(image.width, width * scale, around: focus.x)
        let (y, down) = span(image.height, height * scale, around: focus.y)
        return PixelRect(x: x, y: y, width: across, height: down)
    }

    /// Where the whole image lands when it is scaled to lie inside the canvas.
    private func rectFitting(_ image: PixelSize, on canvas: PixelSize) -> PixelRect {
        let scale = min(width / Double(image.width), height / Double(image.height))
        let (across, down) = (Double(image.width) * scale, Double(image.height) * scale)
        let size = PixelSize(width: min(rounded(across), canvas.width), height: min(rounded(down), canvas.height))
        // Core Graphics counts y from below: an odd row of excess is the upper one.
        let below = max(0, floored((height - down) / 2))
        return PixelRect(
            x: min(max(0, floored((width - across) / 2)), canvas.width - size.width),
            y: max(0, canvas.height - below - size.height), width: size.width, height: size.height)
    }
}

/// One axis of an unscaled placement.
private struct Span {
    let source: Int
    let dest: Int
    let length: Int

    /// - Parameter restAtStart: whether an odd pixel of excess in the middle goes before the image (rows, counted from below
    ///   in Core Graphics) or behind it (columns).
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
