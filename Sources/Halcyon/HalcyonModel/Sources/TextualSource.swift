/// A source whose text says all of it: a URL.
public protocol TextualSource: Hashable, Codable, Sendable {
    /// As the job gave it.
    var text: String { get }

    /// - Throws: ``Failure``.
    init(_ text: String) throws(Failure)
}

extension TextualSource {
    /// Whether the bytes are the same. Swift's strings are equal when they look the same; servers may tell those apart.
    public static func == (left: Self, right: Self) -> Bool { left.text.utf8.elementsEqual(right.text.utf8) }

    /// Of the bytes.
    public func hash(into hasher: inout Hasher) {
        for byte in text.utf8 { hasher.combine(byte) }
    }

    /// From its text, checked again.
    public init(from decoder: any Decoder) throws {
        try self.init(decoder.singleValueContainer().decode(String.self))
    }

    /// As its text.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(text)
    }
}
