import CVips
import Concurrency
import Glibc

/// The fonts for ``Image/init(text:)``: the families in one folder, according to fontconfig.
public enum Fonts {
    private struct State {
        var folder: String?
        var families: [String] = []
    }

    private static let state = Lock(State())

    /// The folder; nil before ``use(folder:)``.
    public static var folder: String? { state.withLock { $0.folder } }

    /// The names of the families, sorted.
    public static var families: [String] { state.withLock { $0.families } }

    /// Adds the fonts of a folder and its subfolders to those of the process, and makes their families available to
    /// ``Image/init(text:)``. Must be called before text is drawn. Later calls with the same folder have no effect.
    ///
    /// Fonts that the system has anyway remain in use for the text in drawings (SVG, PDF), and for characters that a
    /// family does not contain.
    /// - Returns: False if the folder cannot be read.
    @discardableResult public static func use(folder: String) -> Bool {
        state.withLock { state in
            guard state.folder != folder else { return true }
            // fontconfig reports no error for a folder that cannot be read.
            guard let directory = opendir(folder) else { return false }
            closedir(directory)
            FcConfigAppFontClear(nil)
            guard FcConfigAppFontAddDir(nil, folder) == FcTrue else { return false }
            state.folder = folder
            state.families = families(in: FcConfigGetFonts(nil, FcSetApplication))
            return true
        }
    }

    /// Returns the name of a family with the case of the font; nil if the folder does not contain the family.
    public static func family(named name: String) -> String? {
        families.first { $0.lowercased() == name.lowercased() }
    }

    private static func families(in set: UnsafeMutablePointer<FcFontSet>?) -> [String] {
        guard let set, let fonts = set.pointee.fonts else { return [] }
        var names: Set<String> = []
        for index in 0..<Int(set.pointee.nfont) {
            var name: UnsafeMutablePointer<FcChar8>?
            // A font has its family in several languages; the first is the usual name.
            guard let font = fonts[index], FcPatternGetString(font, FC_FAMILY, 0, &name) == FcResultMatch, let name
            else { continue }
            names.insert(String(cString: name))
        }
        return names.sorted()
    }
}

/// A text in one font and size, as Pango lays it out.
public struct TextLayout: Hashable, Sendable {
    /// The alignment of lines.
    public enum Alignment: String, Hashable, Sendable {
        case left = "low"
        case center = "centre"
        case right = "high"
    }

    /// The text, without markup. Line feeds separate lines.
    public var text: String
    /// A family of ``Fonts/families``.
    public var family: String
    /// True for the bold face.
    public var bold: Bool
    /// True for the italic face.
    public var italic: Bool
    /// The size of the font in pixels.
    public var size: Double
    /// The width in pixels at which lines are wrapped, between words or, within longer words, between characters.
    public var width: Int
    /// The alignment of lines.
    public var alignment: Alignment

    /// Creates a layout.
    public init(
        _ text: String, family: String, bold: Bool = false, italic: Bool = false, size: Double, width: Int,
        alignment: Alignment = .left
    ) {
        self.text = text
        self.family = family
        self.bold = bold
        self.italic = italic
        self.size = size
        self.width = width
        self.alignment = alignment
    }

    /// The text as Pango markup.
    fileprivate var markup: String {
        text.unicodeScalars.reduce(into: "") { markup, scalar in
            switch scalar {
            case "&": markup += "&amp;"
            case "<": markup += "&lt;"
            case ">": markup += "&gt;"
            default: markup.unicodeScalars.append(scalar)
            }
        }
    }

    /// The description of the font (`pango_font_description_from_string`). The comma ends the family.
    fileprivate var font: String {
        "\(family),\(bold ? " Bold" : "")\(italic ? " Italic" : "") \(size)"
    }
}

extension Image {
    /// Draws a text: the coverage of each pixel by its glyphs, 0 to 255, as one band. The image has the size of the
    /// ink.
    ///
    /// - Throws: ``VipsError``, also if the text has no ink.
    public convenience init(text layout: TextLayout) throws(VipsError) {
        let drawn = try Operation.call(
            "text",
            [
                "text": .string(layout.markup), "font": .string(layout.font), "width": .int(max(1, layout.width)),
                "align": .string(layout.alignment.rawValue), "wrap": "word-char", "dpi": 72,
            ]
        ).image()
        self.init(sharing: drawn)
    }
}
