import HalcyonModel
import Vips

extension Image {
    /// Draws a text over the image, inside its margins, with an outline around the glyphs.
    ///
    /// - Throws: ``JobError`` `invalid_job` if there is no such font; `VipsError`.
    func written(_ overlay: TextOverlay) throws -> Image {
        let room = size.room(within: overlay.margin)
        let outline = overlay.outlineWidth
        let box = PixelSize(
            width: min(overlay.width ?? room.width, room.width) - 2 * outline,
            height: min(overlay.height ?? room.height, room.height) - 2 * outline)
        let ink = try FittingText(overlay, in: box).draw()
        let glyphs = try ink.calling(
            "embed",
            [
                "x": .int(outline), "y": .int(outline), "width": .int(ink.width + 2 * outline),
                "height": .int(ink.height + 2 * outline), "extend": "black",
            ])
        var layers = [try glyphs.colored(overlay.color)]
        if outline > 0 {
            layers.insert(try glyphs.outlined(by: outline).colored(overlay.outlineColor), at: 0)
        }
        // The whole text becomes transparent, and the outline does not show through it.
        let text = try layers.dropFirst().reduce(layers[0]) { below, layer in try below.under(layer) }
            .fading(to: overlay.opacity)
        let place = room.placing(text.size, at: overlay.position)
        return try under(text, x: place.x + overlay.offset.x, y: place.y + overlay.offset.y, by: .normal)
    }

    /// Returns an image of one color, whose opacity is this band.
    private func colored(_ color: CSSColor) throws(VipsError) -> Image {
        let opacity = Double(color.alpha) / 255
        var opaque = color
        opaque.alpha = 255
        let base = try Image(
            color: [Double(color.red), Double(color.green), Double(color.blue)], width: width, height: height)
        return try base.joined(with: mapped([.table { $0 * opacity }]))
    }

    /// Widens the covered area by `width` pixels: the band is convolved with a disc, and amplified so that the last
    /// pixel beside a straight edge is covered.
    private func outlined(by width: Int) throws(VipsError) -> Image {
        let radius = Double(width) + 0.5
        let disc = (-width...width).map { y in
            (-width...width).map { x in
                let distance = Double(x * x + y * y).squareRoot()
                return min(max(radius - distance, 0), 1)
            }
        }
        let lastColumn = disc.map { $0[2 * width] }.reduce(0, +)
        return try calling(
            "conv", ["mask": .image(Image(matrix: disc, scale: lastColumn)), "precision": "float"]
        ).inBytes()
    }
}

/// A text at the largest size, up to that of the job, at which it fits into a box.
struct FittingText {
    private let layout: TextLayout
    private let box: PixelSize

    /// The greatest area of the box, in pixels, on which the size of a text is tried.
    private static let trialArea = 160_000.0
    /// The smallest size, in pixels, to which a text is reduced. Smaller ones could not be read, and Pango cannot draw
    /// all of them.
    private static let smallest = 4.0

    /// - Throws: ``JobError`` `invalid_job` if there is no such font, or the text cannot be drawn.
    init(_ overlay: TextOverlay, in box: PixelSize) throws {
        guard let family = Fonts.family(named: overlay.font) else { throw JobError(noFont: overlay.font) }
        self.box = box
        let (width, height) = (Double(box.width), Double(box.height))
        // Lines have at least the height of the font, and a character at least a sixteenth of the square of it. Larger
        // sizes need not be tried, and would be expensive for long texts.
        let lines = Double(overlay.text.count { $0 == "\n" } + 1)
        let most = min(height / lines, (width * height * 16 / Double(overlay.text.count)).squareRoot())
        let wanted = min(overlay.size ?? TextOverlay.sizes.upperBound, max(most, Self.smallest))
        var layout = TextLayout(
            overlay.text, family: family, bold: overlay.bold, italic: overlay.italic, size: wanted, width: box.width,
            alignment: overlay.align.layout)
        // A small drawing is enough to find the size, and its cost does not depend on that of the picture.
        let scale = min(1, (Self.trialArea / (width * height)).squareRoot())
        func fits(_ size: Double) -> Bool {
            var small = layout
            small.size = size * scale
            small.width = max(1, Int(width * scale))
            // Pango cannot draw what is far too large or too small.
            guard let ink = try? small.ink() else { return false }
            return Double(ink.width) <= width * scale + 1 && Double(ink.height) <= height * scale + 1
        }
        if !fits(wanted) {
            var (low, high) = (0.0, wanted)
            while high - low > max(0.25, high / 100) {
                let middle = (low + high) / 2
                if fits(middle) { low = middle } else { high = middle }
            }
            layout.size = max(low, min(Self.smallest, wanted))
        }
        self.layout = layout
    }

    /// Draws the text. What does not fit at the smallest size is cut off.
    func draw() throws -> Image {
        var layout = layout
        var ink = try layout.ink()
        // Glyphs have slightly other proportions at their final size.
        for _ in 0..<4 {
            guard ink.width > box.width || ink.height > box.height, layout.size > Self.smallest else {
                break
            }
            layout.size = max(Self.smallest, layout.size * 0.98)
            ink = try layout.ink()
        }
        return try ink.cropped(0, 0, min(ink.width, box.width), min(ink.height, box.height))
    }
}

extension TextOverlay.Alignment {
    fileprivate var layout: TextLayout.Alignment {
        switch self {
        case .left: .left
        case .center: .center
        case .right: .right
        }
    }
}

extension TextLayout {
    /// Draws the text.
    /// - Throws: ``JobError`` `invalid_job` if Pango cannot draw it, such as a text of characters without ink.
    fileprivate func ink() throws(JobError) -> Image {
        do throws(VipsError) {
            return try Image(text: self)
        } catch {
            throw JobError(.invalidJob, "text: \(error.message)", cause: error)
        }
    }
}

extension JobError {
    /// The error for a font that the folder of fonts does not contain.
    init(noFont name: String) {
        let families = Fonts.families
        let known =
            families.isEmpty
            ? "the folder images.fonts contains no fonts"
            : "there are \(families.prefix(20).joined(separator: ", "))\(families.count > 20 ? ", …" : "")"
        self.init(.invalidJob, "text: no font family is named \"\(name)\"; \(known)")
    }
}
