import HalcyonModel
import Threads
import Vips

/// Draws avatars.
struct InitialsProvider: SourceProvider {
    /// Where they are drawn: libvips is not for the threads of tasks.
    let pool: ThreadPool

    /// - Throws: ``Failure`` `provider_error`; `CancellationError` when the pool is closed.
    func fetch(_ initials: Initials, ifNoneMatch known: Validators?) async throws -> FetchResponse {
        do {
            let file = try await pool.run {
                guard Fonts.areThere else { throw NoFonts() }
                return try Avatar(initials: initials).png()
            }
            // The same initials always look the same, as long as the fonts do.
            return .loaded(LoadedSource(body: file, lifetime: .unchanging))
        } catch is ThreadPoolClosed {
            throw CancellationError()
        } catch {
            throw Failure(
                .providerError, "the initials could not be drawn: \(error)", isRetryable: false, cause: error)
        }
    }
}

private struct NoFonts: Error, CustomStringConvertible {
    var description: String { "this machine has no fonts; install some, such as Debian's fonts-dejavu-core" }
}

/// The picture of initials: a square of the background's colour with the letters in its middle.
///
/// libvips' `text` draws them through Pango, in the first bold sans-serif face that fontconfig finds; what that face
/// lacks comes from others, and emoji keep their own colours.
struct Avatar {
    /// Pixels of a side: more than any screen shows of an avatar, and sizing makes it smaller.
    static let side = 1024
    /// The part of the side that letters may fill, across and down.
    private static let room = 0.74

    let initials: Initials

    /// The picture as a PNG file.
    /// - Throws: ``VipsError`` where libvips draws no text, or there is no letter to be seen.
    func png() throws(VipsError) -> [UInt8] {
        let letters = try fittingLetters()
        let background = initials.background
        let square = try Image(
            color: [background.red, background.green, background.blue, background.alpha].map(Double.init),
            width: Self.side, height: Self.side)
        // The picture of a text is as large as its ink. Across its middle is what one sees as the middle; down it is where
        // the weight lies, so that the tail of a J or an accent does not push the rest away.
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

    /// In the size for their number, or smaller where they are wide or tall.
    private func fittingLetters() throws(VipsError) -> Image {
        let size = Double(Self.side) * [0.5, 0.45, 0.36][min(initials.text.count, 3) - 1]
        let letters = try drawn(size: size)
        let excess = Double(max(letters.width, letters.height)) / (Double(Self.side) * Self.room)
        return excess > 1 ? try drawn(size: size / excess) : letters
    }

    /// - Parameter size: of the font, in pixels.
    private func drawn(size: Double) throws(VipsError) -> Image {
        let color = initials.foreground
        let markup = "<span foreground=\"\(color.hexadecimal.prefix(7))\">\(escaped)</span>"
        let letters = try Operation.call(
            "text",
            [
                "text": .string(markup), "font": .string("sans bold \(Int(size))"),
                // A point is a pixel.
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

    /// As Pango's markup, which knows `&` and `<`.
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
    /// The row in which the centre of gravity of the last band lies: of alpha, that of the ink.
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

/// The fonts that libvips draws text with: those that fontconfig finds on this machine.
public enum Fonts {
    /// Whether letters can be drawn. Without a font Pango draws the same box for each of them.
    ///
    /// The first call draws two: not on a thread of the cooperative pool.
    public static var areThere: Bool { found }

    private static let found: Bool = {
        guard let narrow = width(of: "I"), let wide = width(of: "W") else { return false }
        return narrow < wide
    }()

    private static func width(of letter: String) -> Int? {
        VipsLibrary.start()
        // Without fonts libvips refuses.
        return try? Operation.call("text", ["text": .string(letter), "font": "sans bold 100"]).image().width
    }
}
