/// The header fields of a request or a response, in order. Names are case-insensitive (RFC 9110, section 5.1).
public struct HTTPFields: Hashable, Codable, Sendable {
    /// A field line.
    public struct Field: Hashable, Codable, Sendable {
        /// The name with its original case.
        public var name: String
        /// The value without surrounding white space.
        public var value: String

        /// Creates a field line.
        public init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }

        /// True if the bytes are equal. Swift compares strings by canonical equivalence, whereas servers may
        /// distinguish them.
        public static func == (left: Field, right: Field) -> Bool {
            left.name.utf8.elementsEqual(right.name.utf8) && left.value.utf8.elementsEqual(right.value.utf8)
        }

        /// Hashes the bytes.
        public func hash(into hasher: inout Hasher) {
            for byte in name.utf8 { hasher.combine(byte) }
            for byte in value.utf8 { hasher.combine(byte) }
        }
    }

    /// All field lines.
    public private(set) var fields: [Field]

    /// Creates header fields from field lines.
    public init(_ fields: [Field] = []) { self.fields = fields }

    /// The value of a field, its lines joined by commas (RFC 9110, section 5.3); nil if there is none.
    ///
    /// Setting a value replaces all lines of that name, and nil removes them. For a field that is not a list, use
    /// ``first(_:)``.
    public subscript(name: String) -> String? {
        get {
            let values = all(name)
            return values.isEmpty ? nil : values.joined(separator: ", ")
        }
        set {
            fields.removeAll { $0.name.isSame(as: name) }
            if let newValue { add(name, newValue) }
        }
    }

    /// Returns the value of the first line of that name, for fields that are not lists.
    public func first(_ name: String) -> String? { fields.first { $0.name.isSame(as: name) }?.value }

    /// Returns the values of all lines of that name, in order.
    public func all(_ name: String) -> [String] { fields.filter { $0.name.isSame(as: name) }.map(\.value) }

    /// Returns the members of a comma-separated list, in lower case (RFC 9110, section 5.6.1).
    public func list(_ name: String) -> [String] {
        all(name).flatMap { $0.split(separator: ",") }.map { $0.trimmingSpaces().lowercased() }.filter { !$0.isEmpty }
    }

    /// Returns only the fields with these names.
    public func only(_ names: [String]) -> HTTPFields {
        HTTPFields(fields.filter { field in names.contains(where: field.name.isSame) })
    }

    /// Appends a field line.
    public mutating func add(_ name: String, _ value: String) { fields.append(Field(name, value)) }

    /// Appends a continuation to the last field line (obsolete line folding, RFC 9112, section 5.2).
    public mutating func continueLast(_ text: String) {
        guard !fields.isEmpty else { return }
        fields[fields.count - 1].value += " " + text
    }
}

extension HTTPFields: ExpressibleByDictionaryLiteral {
    /// Creates header fields from a literal, in its order. A name may occur several times.
    public init(dictionaryLiteral elements: (String, String)...) {
        self.init(elements.map { Field($0, $1) })
    }
}

extension String {
    /// True if the strings are equal, ignoring the case of ASCII letters.
    package func isSame(as other: String) -> Bool {
        let (own, others) = (utf8, other.utf8)
        return own.count == others.count && own.elementsEqual(others) { $0 == $1 || $0.lowered == $1.lowered }
    }

    /// True if the string is a token (RFC 9110, section 5.6.2), such as a method or a field name.
    package var isToken: Bool { !isEmpty && utf8.allSatisfy(\.isTokenCharacter) }

    /// True if the string is a valid field value: no control characters except tabs.
    package var isFieldValue: Bool { utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7f || $0 == 0x09 } }
}

extension Substring {
    fileprivate func trimmingSpaces() -> Substring {
        func isSpace(_ character: Character) -> Bool { character == " " || character == "\t" }
        let tail = drop(while: isSpace)
        return tail[..<(tail.lastIndex { !isSpace($0) }.map(tail.index(after:)) ?? tail.startIndex)]
    }
}

extension UInt8 {
    fileprivate var lowered: UInt8 { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(self) ? self | 0x20 : self }

    /// Letters, digits and ``!#$%&'*+-.^_`|~``.
    fileprivate var isTokenCharacter: Bool {
        switch self {
        case 0x21, 0x23...0x27, 0x2a, 0x2b, 0x2d, 0x2e, 0x30...0x39, 0x41...0x5a, 0x5e...0x7a, 0x7c, 0x7e: true
        default: false
        }
    }
}
