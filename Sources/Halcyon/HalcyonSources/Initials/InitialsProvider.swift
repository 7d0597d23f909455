import Concurrency
import HalcyonModel
import Vips

/// A provider that draws avatars from initials.
struct InitialsProvider: SourceProvider {
    /// The threads for drawing. libvips must not run on the cooperative pool.
    let pool: ThreadPool

    /// - Throws: ``JobError`` `provider_error`; `CancellationError` when the pool is closed.
    func fetch(_ initials: Initials, ifNoneMatch known: Validators?) async throws -> FetchResponse {
        do {
            let file = try await pool.run {
                guard Fonts.areThere else { throw NoFonts() }
                return try Avatar(initials: initials).png()
            }
            // The same initials always look the same unless the fonts change.
            return .loaded(LoadedSource(body: file, lifetime: .unchanging))
        } catch is ThreadPoolClosed {
            throw CancellationError()
        } catch {
            throw JobError(
                .providerError, "failed to draw the initials: \(error)", isRetryable: false, cause: error)
        }
    }
}

private struct NoFonts: Error, CustomStringConvertible {
    var description: String { "no fonts found; install a font package such as Debian's fonts-dejavu-core" }
}

/// The image of initials: a square of the background color with the letters in the center.
///
/// libvips' `text` draws the letters through Pango, in the first bold sans-serif face that fontconfig finds. Glyphs
/// that this face lacks come from other fonts, and emoji keep their own colors.
struct Avatar {
    /// The side length in pixels. It is larger than avatars are displayed, because sizing scales it down.
    static let side = 1024
    /// The fraction of the side that letters may fill, horizontally and vertically.
    private static let room = 0.74

    let initials: Initials

    /// Draws the image and encodes it as PNG.
    /// - Throws: ``VipsError`` if libvips cannot draw text, or no letter is visible.
    func png() throws(VipsError) -> [UInt8] {
        let letters = try fittingLetters()
        let background = initials.background
        let square = try Image(
            color: [background.red, background.green, background.blue, background.alpha].map(Double.init),
            width: Self.side, height: Self.side)
        // The image of a text is cropped to its ink. Horizontally, its middle is the visual center. Vertically, the
        // center of gravity is used, so that the tail of a J or an accent does not shift the other letters.
        let picture = try Operation.call(
            "composite2",
            [
                "base": .image(square), "overlay": .image(letters), "mode": "over",
                "x": .int((Self.side - letters.width) / 2), "y": .int(Self.side / 2 - (try letters.centreOfInk())),
            ]
        ).image()
        let bytes = try Operation.call("cast", ["in": .image(picture), "format": "uchar"]).image()
        return try bytes.encoded(as: .png, ["compression": 1])
    }

    /// Draws the letters in the font size for their number, or smaller if they are too wide or too tall.
    private func fittingLetters() throws(VipsError) -> Image {
        let size = Double(Self.side) * [0.5, 0.45, 0.36][min(initials.text.count, 3) - 1]
        let letters = try drawn(size: size)
        let excess = Double(max(letters.width, letters.height)) / (Double(Self.side) * Self.room)
        return excess > 1 ? try drawn(size: size / excess) : letters
    }

    /// Draws the letters.
    /// - Parameter size: The font size in pixels.
    private func drawn(size: Double) throws(VipsError) -> Image {
        let color = initials.foreground
        let markup = "<span foreground=\"\(color.hexadecimal.prefix(7))\">\(escaped)</span>"
        let letters = try Operation.call(
            "text",
            [
                "text": .string(markup), "font": .string("sans bold \(Int(size))"),
                // At 72 dpi, a point is a pixel.
                "dpi": 72, "rgba": true,
            ]
        ).image()
        guard !color.isOpaque else { return letters }
        let faded = try Operation.call(
            "linear",
            ["in": .image(letters), "a": [1, 1, 1, .init(color.alpha) / 255], "b": [0, 0, 0, 0], "uchar": true]
        ).image()
        return try Operation.call("copy", ["in": .image(faded), "interpretation": "srgb"]).image()
    }

    /// The text with `&` and `<` escaped for Pango markup.
    private var escaped: String {
        initials.text.reduce(into: "") { markup, letter in
            switch letter {
            case "&": markup += "&amp;"
            case "<": markup += "&lt;"
            default: markup.append(letter)
            }
        }
    }
}

extension Image {
    /// The row of the center of gravity of the last band. For alpha, this is the center of the ink.
    fileprivate func centreOfInk() throws(VipsError) -> Int {
        let alpha = try Operation.call("extract_band", ["in": .image(self), "band": .int(bands - 1)]).image()
        let (samples, width) = (try alpha.pixels(), alpha.width)
        let rows = (0..<alpha.height).map { row in
            samples[row * width..<(row + 1) * width].reduce(0) { $0 + Int($1) }
        }
        let total = rows.reduce(0, +)
        guard total > 0 else { return height / 2 }
        return rows.enumerated().reduce(0) { $0 + $1.offset * $1.element } / total
    }
}

/// The fonts that libvips can draw with: those that fontconfig finds on this machine.
public enum Fonts {
    /// True if letters can be drawn. Without a font, Pango draws the same box for every letter.
    ///
    /// The first call draws two letters. Do not make it on a thread of the cooperative pool.
    public static var areThere: Bool { found }

    private static let found: Bool = {
        guard let narrow = width(of: "I"), let wide = width(of: "W") else { return false }
        return narrow < wide
    }()

    private static func width(of letter: String) -> Int? {
        VipsLibrary.start()
        // libvips returns an error if there are no fonts.
        return try? Operation.call("text", ["text": .string(letter), "font": "sans bold 100"]).image().width
    }
}
