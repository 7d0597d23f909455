import CCrypto

/// Base64 with padding and without line breaks (RFC 4648, section 4), by libcrypto.
public enum Base64 {
    /// Four characters for every three bytes begun.
    public static func encode(_ bytes: [UInt8]) -> String {
        // libcrypto ends what it writes with a NUL.
        let room = (bytes.count + 2) / 3 * 4 + 1
        return String(unsafeUninitializedCapacity: room) { text in
            Int(EVP_EncodeBlock(text.baseAddress, bytes, Int32(bytes.count)))
        }
    }
}
