import CCrypto

/// Message authentication codes by SHA-256 (RFC 2104, FIPS 198-1), by OpenSSL.
public enum HMACSHA256 {
    /// The code of `message` under `key`. libcrypto fails here only for want of memory or of the algorithm itself, and then this traps.
    public static func code(of message: [UInt8], key: [UInt8]) -> Digest256 {
        withUnsafeTemporaryAllocation(byteCount: Digest256.count, alignment: 8) { code in
            var length: UInt32 = 0
            let bytes = code.assumingMemoryBound(to: UInt8.self).baseAddress
            let result = HMAC(EVP_sha256(), key, Int32(key.count), message, message.count, bytes, &length)
            precondition(result != nil && length == UInt32(Digest256.count), "libcrypto cannot make an HMAC")
            return Digest256(UnsafeRawBufferPointer(code))
        }
    }
}
