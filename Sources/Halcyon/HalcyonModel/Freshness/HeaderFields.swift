/// Header fields of a request or a response, in their order.
public struct HeaderFields: Hashable, Codable, Sendable, ExpressibleByArrayLiteral {
    /// One field.
    public struct Field: Hashable, Codable, Sendable {
        /// As it was sent, in any case.
        public var name: String
        /// Without white space around it.
        public var value: String

        /// Takes the values as they are.
        public init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }

        /// Whether the bytes are the same. Swift's strings are equal when they look the same; servers may tell those apart.
        public static func == (left: Field, right: Field) -> Bool {
            left.name.utf8.elementsEqual(right.name.utf8) && left.value.utf8.elementsEqual(right.value.utf8)
        }

        /// Of the bytes.
        public func hash(into hasher: inout Hasher) {
            for byte in name.utf8 { hasher.combine(byte) }
            for byte in value.utf8 { hasher.combine(byte) }
        }
    }

    /// All of them.
    public private(set) var fields: [Field]

    /// These fields.
    public init(_ fields: [Field] = []) { self.fields = fields }

    /// From pairs of names and values.
    public init(_ fields: some Sequence<(name: String, value: String)>) {
        self.fields = fields.map { Field($0.name, $0.value) }
    }

    /// From pairs of names and values.
    public init(arrayLiteral elements: (name: String, value: String)...) { self.init(elements) }

    /// The value of a field, several of one name joined by commas (RFC 9110, section 5.3); nil when there is none.
    ///
    /// Set, it takes the place of all of that name.
    public subscript(_ name: String) -> String? {
        get {
            let values = fields.lazy.filter { $0.name.isSameField(as: name) }.map(\.value)
            return values.isEmpty ? nil : values.joined(separator: ", ")
        }
        set {
            fields.removeAll { $0.name.isSameField(as: name) }
            if let newValue { fields.append(Field(name, newValue)) }
        }
    }

    /// The value of the first field of that name, for those that are no lists.
    public func first(_ name: String) -> String? { fields.first { $0.name.isSameField(as: name) }?.value }

    /// Only those of these names.
    public func only(_ names: [String]) -> HeaderFields {
        HeaderFields(fields.filter { field in names.contains { field.name.isSameField(as: $0) } })
    }

    /// The members of a field that is a comma-separated list, in lower case (RFC 9110, section 5.6.1).
    public func list(_ name: String) -> [String] {
        (self[name] ?? "").split(separator: ",").map { $0.trimmingSpaces().lowercased() }.filter { !$0.isEmpty }
    }
}

extension String {
    /// Names of fields are compared without regard to case (RFC 9110, section 5.1).
    fileprivate func isSameField(as other: String) -> Bool {
        utf8.count == other.utf8.count && lowercased() == other.lowercased()
    }
}

extension Substring {
    fileprivate func trimmingSpaces() -> Substring {
        func isSpace(_ character: Character) -> Bool { character == " " || character == "\t" }
        let tail = drop(while: isSpace)
        return tail[..<(tail.lastIndex { !isSpace($0) }.map(tail.index(after:)) ?? tail.startIndex)]
    }
}
