import Formats

/// A text with placeholders in braces, such as `items/7/{variant}.{format}`, that is expanded into part of a URL or the
/// name of an object. A pure value. Its user defines the placeholders and their values.
public struct NameTemplate: Hashable, Sendable {
    private enum Part: Hashable, Sendable {
        case text(String)
        case placeholder(String)
    }

    /// The template as given.
    public let text: String
    private let parts: [Part]

    /// Parses a template.
    /// - Parameters:
    ///   - text: A text with placeholders in braces.
    ///   - known: The names of all placeholders, without braces.
    /// - Throws: ``JobError`` `invalid_job` for an unknown placeholder or an unpaired brace. Its message does not quote
    ///   the text around placeholders, which may be a secret.
    public init(_ text: String, placeholders known: [String]) throws(JobError) {
        let list = known.map { "{\($0)}" }.joined(separator: ", ")
        var parts: [Part] = []
        var rest = text.utf8[...]
        while let brace = rest.firstIndex(where: Self.isBrace) {
            guard rest[brace] == UInt8(ascii: "{") else {
                throw JobError(.invalidJob, "a } without a {; expected a placeholder: \(list)")
            }
            if brace > rest.startIndex { parts.append(.text(String(decoding: rest[..<brace], as: UTF8.self))) }
            rest = rest[brace...].dropFirst()
            guard let end = rest.firstIndex(where: Self.isBrace), rest[end] == UInt8(ascii: "}") else {
                throw JobError(.invalidJob, "a { without a }; expected a placeholder: \(list)")
            }
            let name = String(decoding: rest[..<end], as: UTF8.self)
            guard known.contains(name) else {
                throw JobError(.invalidJob, "unknown placeholder\(Self.quoted(name)); expected one of \(list)")
            }
            parts.append(.placeholder(name))
            rest = rest[end...].dropFirst()
        }
        if !rest.isEmpty { parts.append(.text(String(decoding: rest, as: UTF8.self))) }
        self.text = text
        self.parts = parts
    }

    /// The names of the placeholders in the template.
    public var placeholders: Set<String> {
        Set(parts.compactMap { if case .placeholder(let name) = $0 { name } else { nil } })
    }

    /// Replaces the placeholders by their values. All bytes of a value except unreserved characters (RFC 3986, section
    /// 2.3) are percent-encoded, so that a value stays within its segment of a path.
    /// - Parameter value: A function that returns the value of a placeholder.
    /// - Throws: ``JobError`` `invalid_job` if a value is empty or consists of dots, which could be a segment of its own:
    ///   `.` and `..` mean the same with and without percent-encoding.
    public func expanded(_ value: (String) -> String) throws(JobError) -> String {
        try joined { name throws(JobError) in
            let value = value(name)
            guard !value.utf8.allSatisfy({ $0 == UInt8(ascii: ".") }) else {
                throw JobError(.invalidJob, "the value of {\(name)} is \"\(value)\"; expected a name")
            }
            return PercentEncoding.encode(value)
        }
    }

    /// Replaces the placeholders by their values, unchanged.
    /// - Parameter value: A function that returns the value of a placeholder. Its errors are rethrown.
    public func joined<Failure>(_ value: (String) throws(Failure) -> String) throws(Failure) -> String {
        var result = ""
        for part in parts {
            switch part {
            case .text(let text): result += text
            case .placeholder(let name): result += try value(name)
            }
        }
        return result
    }

    private static func isBrace(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "{") || byte == UInt8(ascii: "}") }

    /// Returns the name in braces for a message; nothing if it is not a plain word.
    private static func quoted(_ name: String) -> String {
        (1...32).contains(name.utf8.count) && name.utf8.allSatisfy(PercentEncoding.isUnreserved) ? " {\(name)}" : ""
    }
}
