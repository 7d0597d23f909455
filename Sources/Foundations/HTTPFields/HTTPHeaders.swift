/// Header fields in the order they stand in, found by name whatever its case (RFC 9110, 5.1).
public struct HTTPHeaders: Hashable, Sendable {
    /// One field line.
    public struct Field: Hashable, Sendable {
        /// The name as it was written.
        public var name: String
        /// The value without the blanks around it.
        public var value: String

        /// A field of this name and value.
        public init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    /// All field lines.
    public private(set) var fields: [Field]

    /// These fields.
    public init(_ fields: [Field] = []) { self.fields = fields }

    /// The first value of `name`; setting it replaces all of them, and nil removes them.
    public subscript(name: String) -> String? {
        get { fields.first { $0.name.isSame(as: name) }?.value }
        set {
            fields.removeAll { $0.name.isSame(as: name) }
            if let newValue { add(name, newValue) }
        }
    }

    /// All values of `name`, in order.
    public func all(_ name: String) -> [String] {
        fields.filter { $0.name.isSame(as: name) }.map(\.value)
    }

    /// Adds a field line behind the others.
    public mutating func add(_ name: String, _ value: String) { fields.append(Field(name, value)) }

    /// Takes a line that continues the one before it (obsolete line folding, RFC 9112, 5.2).
    public mutating func continueLast(_ text: String) {
        guard !fields.isEmpty else { return }
        fields[fields.count - 1].value += " " + text
    }
}

extension HTTPHeaders: ExpressibleByDictionaryLiteral {
    /// Fields in the order of the literal.
    public init(dictionaryLiteral elements: (String, String)...) {
        self.init(elements.map { Field($0, $1) })
    }
}

extension String {
    /// Equality without regard to the case of ASCII letters.
    package func isSame(as other: String) -> Bool {
        let (own, others) = (utf8, other.utf8)
        return own.count == others.count && own.elementsEqual(others) { $0 == $1 || $0.lowered == $1.lowered }
    }
}

extension UInt8 {
    fileprivate var lowered: UInt8 { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(self) ? self | 0x20 : self }
}
