/// Percent-encoding (RFC 3986, section 2.1).
public enum PercentEncoding {
    /// The bytes that a text stands for; nil when a `%` has no two hexadecimal digits behind it.
    public static func decode(_ text: some Sequence<UInt8>) -> [UInt8]? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.underestimatedCount)
        var rest = text.makeIterator()
        while let byte = rest.next() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.next().flatMap(value), let low = rest.next().flatMap(value) else { return nil }
            bytes.append(high << 4 | low)
        }
        return bytes
    }

    /// A path with everything as `%XX` but slashes and what is unreserved.
    public static func encode(path: String) -> String {
        var bytes: [UInt8] = []
        for byte in path.utf8 {
            if isUnreserved(byte) || byte == UInt8(ascii: "/") {
                bytes.append(byte)
            } else {
                bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static let digits = Array("0123456789ABCDEF".utf8)

    private static func value(_ digit: UInt8) -> UInt8? {
        guard isHexadecimal(digit) else { return nil }
        return digit <= 0x39 ? digit - 0x30 : (digit | 0x20) - 0x61 + 10
    }
}
