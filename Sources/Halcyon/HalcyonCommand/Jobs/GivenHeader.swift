import Values

/// A header field of a command line: `NAME:VALUE`, perhaps with spaces around the value.
struct GivenHeader: Sendable {
    let name: String
    let value: String

    /// nil where there is no colon. The reader of jobs checks the rest.
    init?(_ text: String) {
        guard let colon = text.firstIndex(of: ":") else { return nil }
        name = String(text[..<colon])
        var value = text[colon...].dropFirst()
        while value.first == " " { value.removeFirst() }
        while value.last == " " { value.removeLast() }
        self.value = String(value)
    }
}

extension ValueKind<GivenHeader> {
    static var header: Self { ValueKind("a header such as Accept:image/webp") { GivenHeader($0) } }
}
