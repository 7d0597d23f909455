import CCrypto

/// Base64 with padding and without line breaks (RFC 4648, section 4), implemented by libcrypto.
public enum Base64 {
    /// Encodes bytes as four characters for every three bytes or part of them.
    public static func encode(_ bytes: [UInt8]) -> String {
        // libcrypto appends a NUL.
        let room = (bytes.count + 2) / 3 * 4 + 1
        return String(unsafeUninitializedCapacity: room) { text in
            Int(EVP_EncodeBlock(text.baseAddress, bytes, Int32(bytes.count)))
        }
    }

    /// Decodes a text; nil if it is not base64 of this form.
    public static func decode(_ text: String) -> [UInt8]? {
        let text = Array(text.utf8)
        let padding = text.reversed().prefix { $0 == UInt8(ascii: "=") }.count
        // libcrypto tolerates white space around the text and any padding inside it.
        guard text.count % 4 == 0, padding <= 2, text.dropLast(padding).allSatisfy(isDigit) else { return nil }
        return [UInt8](unsafeUninitializedCapacity: text.count / 4 * 3) { bytes, count in
            // The result of libcrypto includes the bytes of the padding.
            count = max(0, Int(EVP_DecodeBlock(bytes.baseAddress, text, Int32(text.count))) - padding)
        }
    }

    /// Decodes base64url (RFC 4648, section 5) with or without padding; nil if the text is not of this form.
    public static func decode(urlSafe text: some StringProtocol) -> [UInt8]? {
        let digits = text.utf8.reversed().drop { $0 == UInt8(ascii: "=") }.reversed()
        guard digits.allSatisfy({ $0 != UInt8(ascii: "+") && $0 != UInt8(ascii: "/") }) else { return nil }
        let plain = digits.map { byte in
            switch byte {
            case UInt8(ascii: "-"): UInt8(ascii: "+")
            case UInt8(ascii: "_"): UInt8(ascii: "/")
            default: byte
            }
        }
        let padding = [UInt8](repeating: UInt8(ascii: "="), count: (4 - plain.count % 4) % 4)
        return decode(String(decoding: plain + padding, as: UTF8.self))
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "/"):
            true
        default: false
        }
    }
}
