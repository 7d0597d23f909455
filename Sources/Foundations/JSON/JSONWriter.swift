/// Writes one JSON text (RFC 8259), compact, members in the order they are given:
///
///     var writer = JSONWriter()
///     writer.object { writer in
///         writer.member("key", key)
///         writer.member("variants", variants)
///     }
///     send(writer.bytes)
public struct JSONWriter: Sendable {
    /// What has been written so far.
    public private(set) var bytes: [UInt8] = []
    private var needsComma = false

    /// - Parameter capacity: bytes to have room for from the start.
    public init(capacity: Int = 1024) {
        bytes.reserveCapacity(capacity)
    }

    // MARK: Containers

    /// An object; `body` writes its members.
    public mutating func object<Failure>(_ body: (inout JSONWriter) throws(Failure) -> Void) throws(Failure) {
        open(UInt8(ascii: "{"))
        try body(&self)
        close(UInt8(ascii: "}"))
    }

    /// An array; `body` writes its values.
    public mutating func array<Failure>(_ body: (inout JSONWriter) throws(Failure) -> Void) throws(Failure) {
        open(UInt8(ascii: "["))
        try body(&self)
        close(UInt8(ascii: "]"))
    }

    /// A member's name; its value must follow.
    public mutating func name(_ name: String) {
        value(name)
        bytes.append(UInt8(ascii: ":"))
        needsComma = false
    }

    /// A member of the object that is being written.
    public mutating func member(_ name: String, _ value: some JSONWritable) {
        self.name(name)
        value.write(to: &self)
    }

    /// The same, and nothing at all for nil.
    public mutating func member(_ name: String, _ value: (some JSONWritable)?) {
        if let value { member(name, value) }
    }

    // MARK: Values

    /// Anything that can write itself.
    public mutating func value(_ value: some JSONWritable) {
        value.write(to: &self)
    }

    /// A string. Quotes, backslashes and control characters are escaped, everything else goes out as it is.
    public mutating func value(_ string: String) {
        separate()
        bytes.append(UInt8(ascii: "\""))
        var string = string
        string.withUTF8 { text in
            var start = 0
            for index in text.indices where text[index].needsEscape {
                bytes.append(contentsOf: text[start..<index])
                escape(text[index])
                start = index + 1
            }
            bytes.append(contentsOf: text[start...])
        }
        bytes.append(UInt8(ascii: "\""))
    }

    /// A whole number.
    public mutating func value(_ integer: Int64) {
        separate()
        append(integer.description)
    }

    /// A whole number.
    public mutating func value(_ integer: UInt64) {
        separate()
        append(integer.description)
    }

    /// The shortest decimal that reads back as the same double. It must be finite: JSON has no word for the others.
    public mutating func value(_ double: Double) {
        precondition(double.isFinite, "JSON has no \(double)")
        separate()
        append(double.description)
    }

    /// `true` or `false`.
    public mutating func value(_ bool: Bool) {
        separate()
        append(bool ? "true" : "false")
    }

    /// `null`.
    public mutating func null() {
        separate()
        append("null")
    }

    /// A value that is JSON already; it is not checked.
    public mutating func raw(_ json: [UInt8]) {
        separate()
        bytes.append(contentsOf: json)
    }

    // MARK: Pieces

    private mutating func separate() {
        if needsComma { bytes.append(UInt8(ascii: ",")) }
        needsComma = true
    }

    private mutating func open(_ bracket: UInt8) {
        separate()
        bytes.append(bracket)
        needsComma = false
    }

    private mutating func close(_ bracket: UInt8) {
        bytes.append(bracket)
        needsComma = true
    }

    private mutating func append(_ ascii: String) {
        var ascii = ascii
        ascii.withUTF8 { bytes.append(contentsOf: $0) }
    }

    private mutating func escape(_ byte: UInt8) {
        switch byte {
        case UInt8(ascii: "\""): append("\\\"")
        case UInt8(ascii: "\\"): append("\\\\")
        case UInt8(ascii: "\n"): append("\\n")
        case UInt8(ascii: "\r"): append("\\r")
        case UInt8(ascii: "\t"): append("\\t")
        default:
            append(byte < 16 ? "\\u000" : "\\u00")
            append(String(byte, radix: 16))
        }
    }
}

extension UInt8 {
    /// The characters that RFC 8259, section 7, wants escaped.
    fileprivate var needsEscape: Bool { self < 0x20 || self == UInt8(ascii: "\"") || self == UInt8(ascii: "\\") }
}
