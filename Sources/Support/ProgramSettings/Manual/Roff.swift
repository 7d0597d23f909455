/// A writer of a manual page.
struct Roff {
    private(set) var text: String

    /// Begins a page. It has no date, so that the same version always has the same pages.
    init(name: String, section: Int, _ details: ManualDetails) {
        let words = [name.uppercased(), "\(section)", "", details.product, details.title]
        text = """
            .\\" Generated from the declarations of commands and settings.
            .TH \(words.map(quotedArgument).joined(separator: " "))
            .\\" No hyphenation and no justification: names must stay searchable.
            .nh
            .ad l

            """
    }

    /// Begins a section.
    mutating func section(_ title: String) { line(".SH \(quotedArgument(title))") }

    /// Begins a subsection.
    mutating func subsection(_ title: String) { line(".SS \(quotedArgument(title))") }

    /// Appends a line of roff, as it is.
    mutating func line(_ roff: String) { text += roff + "\n" }

    /// Appends paragraphs. Empty lines separate them, and other line breaks are preserved.
    mutating func prose(_ paragraphs: String) { body(paragraphs, paragraph: ".PP") }

    /// Appends an item of a list: a tag, which is roff, and its description.
    mutating func item(_ tag: String, _ description: String) {
        line(".TP")
        line(tag)
        body(description, paragraph: ".IP")
    }

    /// Appends the last section: a list of pages such as `prog(1)`.
    mutating func seeAlso(_ pages: [String]) {
        guard !pages.isEmpty else { return }
        section("SEE ALSO")
        let references = pages.map { page in
            let name = page.prefix { $0 != "(" }
            return "\\fB\(escaped(name))\\fP\(page.dropFirst(name.count))"
        }
        line(references.joined(separator: ", "))
    }

    private mutating func body(_ paragraphs: String, paragraph: String) {
        var isAfterLine = false
        var isAfterGap = false
        for part in paragraphs.split(separator: "\n", omittingEmptySubsequences: false) {
            if part.allSatisfy(\.isWhitespace) {
                isAfterGap = isAfterLine
                continue
            }
            if isAfterGap { line(paragraph) } else if isAfterLine { line(".br") }
            line(marked(part))
            isAfterLine = true
            isAfterGap = false
        }
    }
}

/// Escapes a text in which code stands in backticks, and sets the code in bold. A backtick without a partner is kept.
func marked(_ text: some StringProtocol) -> String {
    let parts = text.split(separator: "`", omittingEmptySubsequences: false)
    guard parts.count % 2 == 1 else { return escaped(text) }
    let pieces = parts.enumerated().map { index, part in
        // A control character counts only at the start of the line, which the first part may be without any text.
        let piece = escaped(part, isAtStart: index == 0)
        return index % 2 == 0 ? piece : "\\fB\(piece)\\fP"
    }
    return pieces.joined()
}

/// Characters that roff interprets, or sets as typographic ones: a hyphen would be U+2010, which no shell accepts.
private let glyphs: [Character: String] = [
    "\\": "\\(rs", "-": "\\-", "'": "\\(aq", "`": "\\(ga", "^": "\\(ha", "~": "\\(ti", "\"": "\\(dq",
    // Terminals without Unicode have replacements for these.
    "…": "...", "–": "\\(en", "—": "\\(em", "×": "\\(mu", "≤": "\\(<=", "≥": "\\(>=", "→": "\\(->",
    "\n": " ", "\t": " ",
]

/// Escapes a text so that roff prints it as it is.
/// - Parameter isAtStart: True if a line may begin with the text. A dot there would begin a request.
func escaped(_ text: some StringProtocol, isAtStart: Bool = true) -> String {
    var result = isAtStart && text.hasPrefix(".") ? "\\&" : ""
    for character in text {
        if let glyph = glyphs[character] {
            result += glyph
        } else {
            for scalar in character.unicodeScalars {
                if scalar.isASCII {
                    result.unicodeScalars.append(scalar)
                } else {
                    let digits = String(scalar.value, radix: 16, uppercase: true)
                    result += "\\[u\(String(repeating: "0", count: max(0, 4 - digits.count)))\(digits)]"
                }
            }
        }
    }
    return result
}

/// Returns a text as one argument of a macro.
private func quotedArgument(_ text: String) -> String { "\"\(escaped(text, isAtStart: false))\"" }
