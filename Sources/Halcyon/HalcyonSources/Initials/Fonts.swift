import Vips

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
