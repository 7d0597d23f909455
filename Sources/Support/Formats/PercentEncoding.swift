/// Percent-encoding (RFC 3986, section 2.1).
public enum PercentEncoding {
    /// Decodes a text; nil if a `%` is not followed by two hexadecimal digits.
    /// - Parameter plusIsSpace: True if `+` encodes a space, as in the query of an HTML form.
    @inlinable
    public static func decode(_ text: some Sequence<UInt8>, plusIsSpace: Bool = false) -> [UInt8]? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.underestimatedCount)
        var rest = text.makeIterator()
        while let byte = rest.next() {
            switch byte {
            case UInt8(ascii: "%"):
                guard let high = rest.next().flatMap(digit), let low = rest.next().flatMap(digit) else { return nil }
                bytes.append(high << 4 | low)
            case UInt8(ascii: "+") where plusIsSpace: bytes.append(UInt8(ascii: " "))
            default: bytes.append(byte)
            }
        }
        return bytes
    }

    /// Decodes a text; nil if an escape is invalid or the result is not UTF-8.
    public static func decode(_ text: some StringProtocol) -> String? {
        decode(text.utf8).flatMap { String(validating: $0, as: UTF8.self) }
    }

    /// Escapes all bytes of a text except unreserved characters and those in `kept`.
    public static func encode(_ text: String, keeping kept: String = "") -> String {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.utf8.count)
        for byte in text.utf8 {
            if isUnreserved(byte) || kept.utf8.contains(byte) {
                bytes.append(byte)
            } else {
                bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// True if a byte is an unreserved character (RFC 3986, section 2.3), which means the same with and without an
    /// escape.
    public static func isUnreserved(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
            UInt8(ascii: "~"):
            true
        default: false
        }
    }

    private static let digits = Array("0123456789ABCDEF".utf8)

    @usableFromInline
    static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case 0x30...0x39: byte - 0x30
        case 0x41...0x46: byte - 0x41 + 10
        case 0x61...0x66: byte - 0x61 + 10
        default: nil
        }
    }
}
