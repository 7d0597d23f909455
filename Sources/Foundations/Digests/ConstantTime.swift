import CCrypto

extension Digest256 {
    /// Whether all bytes are equal, found in a time that does not tell how many are: for what proves who somebody is.
    public func isSame(inConstantTimeAs other: Digest256) -> Bool {
        withUnsafeBytes { own in
            other.withUnsafeBytes { CRYPTO_memcmp(own.baseAddress, $0.baseAddress, Self.count) == 0 }
        }
    }
}
