/// An avatar: one to three letters on a coloured square, for people without a picture.
public struct Initials: Hashable, Codable, Sendable {
    /// What a source's text begins with.
    public static let scheme = "initials:"
    /// Characters taken at most.
    public static let longest = 3

    /// The letters as they are drawn.
    public let text: String
    /// Of the square.
    public let background: CSSColor
    /// Of the letters.
    public let foreground: CSSColor

    /// - Parameters:
    ///   - text: one to three letters, digits or symbols.
    ///   - background: nil for one that follows from the letters, so that a person keeps theirs.
    ///   - foreground: nil for black or white, whichever reads better.
    /// - Throws: ``Failure`` `invalid_job` for none, too many, or what is no letter, digit or symbol.
    public init(_ text: String, background: CSSColor? = nil, foreground: CSSColor? = nil) throws(Failure) {
        let isVisible = text.unicodeScalars.allSatisfy { $0 == Self.joiner || !$0.isInvisible }
        guard (1...Self.longest).contains(text.count), text.unicodeScalars.count <= 4 * Self.longest, isVisible else {
            throw Failure(.invalidJob, "expected 1 to \(Self.longest) initials without spaces")
        }
        self.text = text
        let background = background ?? Self.color(of: text)
        self.background = background
        self.foreground = foreground ?? (background.luminance > 0.36 ? .black : .white)
    }

    /// Joins emoji to one.
    private static let joiner: Unicode.Scalar = "\u{200d}"

    /// Text and colours: avatars of one key look the same.
    var cacheKey: String { "\(text) \(background.hexadecimal) \(foreground.hexadecimal)" }

    /// Twelve hues around the circle, dark enough for white letters; FNV-1a of the letters chooses.
    private static func color(of text: String) -> CSSColor {
        let hash = text.utf8.reduce(UInt32(2_166_136_261)) { ($0 ^ UInt32($1)) &* 16_777_619 }
        return palette[Int(hash % UInt32(palette.count))]
    }

    private static let palette: [CSSColor] = stride(from: 0, to: 360, by: 30).compactMap {
        CSSColor("hsl(\($0) 55% 42%)")
    }
}

extension Unicode.Scalar {
    /// Spaces, line ends, control characters, and marks that only steer the text around them.
    fileprivate var isInvisible: Bool {
        switch properties.generalCategory {
        case .control, .format, .surrogate, .spaceSeparator, .lineSeparator, .paragraphSeparator: true
        default: properties.isWhitespace
        }
    }
}

extension CSSColor {
    /// Relative luminance, 0 to 1 (WCAG 2.2), with 2 for the exponent: near enough to choose between black and white.
    fileprivate var luminance: Double {
        func light(_ channel: UInt8) -> Double { Double(channel) * Double(channel) / 65_025 }
        return 0.2126 * light(red) + 0.7152 * light(green) + 0.0722 * light(blue)
    }
}
