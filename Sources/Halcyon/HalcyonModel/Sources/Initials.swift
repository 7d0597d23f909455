/// An avatar: one to three letters on a colored square, for people without a picture.
public struct Initials: Hashable, Codable, Sendable {
    /// The prefix of the source's text, including the colon.
    public static let scheme = "initials:"
    /// The maximum number of characters.
    public static let longest = 3

    /// The letters to draw.
    public let text: String
    /// The color of the square.
    public let background: CSSColor
    /// The color of the letters.
    public let foreground: CSSColor

    /// Creates an avatar.
    /// - Parameters:
    ///   - text: One to three letters, digits or symbols.
    ///   - background: The color of the square; nil for a color derived from the letters, so that the same letters
    ///     always have the same color.
    ///   - foreground: The color of the letters; nil for black or white, by contrast with the background.
    /// - Throws: ``JobError`` `invalid_job` if the text is empty, too long, or contains spaces or control characters.
    public init(_ text: String, background: CSSColor? = nil, foreground: CSSColor? = nil) throws(JobError) {
        let isVisible = text.unicodeScalars.allSatisfy { $0 == Self.joiner || !$0.isInvisible }
        guard (1...Self.longest).contains(text.count), text.unicodeScalars.count <= 4 * Self.longest, isVisible else {
            throw JobError(.invalidJob, "expected 1 to \(Self.longest) initials without spaces")
        }
        self.text = text
        let background = background ?? Self.color(of: text)
        self.background = background
        self.foreground = foreground ?? (background.luminance > 0.36 ? .black : .white)
    }

    /// The zero-width joiner, which combines several emoji into one.
    private static let joiner: Unicode.Scalar = "\u{200d}"

    /// The text and the colors. Avatars with the same key look the same.
    var cacheKey: String { "\(text) \(background.hexadecimal) \(foreground.hexadecimal)" }

    /// Selects one of twelve hues, dark enough for white letters, by the FNV-1a hash of the letters.
    private static func color(of text: String) -> CSSColor {
        let hash = text.utf8.reduce(UInt32(2_166_136_261)) { ($0 ^ UInt32($1)) &* 16_777_619 }
        return palette[Int(hash % UInt32(palette.count))]
    }

    private static let palette: [CSSColor] = stride(from: 0, to: 360, by: 30).compactMap {
        CSSColor("hsl(\($0) 55% 42%)")
    }
}

extension Unicode.Scalar {
    /// True for spaces, line breaks, control characters and format characters.
    fileprivate var isInvisible: Bool {
        switch properties.generalCategory {
        case .control, .format, .surrogate, .spaceSeparator, .lineSeparator, .paragraphSeparator: true
        default: properties.isWhitespace
        }
    }
}

extension CSSColor {
    /// The approximate relative luminance, 0 to 1 (WCAG 2.2 with an exponent of 2), to choose between black and white.
    fileprivate var luminance: Double {
        func light(_ channel: UInt8) -> Double { Double(channel) * Double(channel) / 65_025 }
        return 0.2126 * light(red) + 0.7152 * light(green) + 0.0722 * light(blue)
    }
}
