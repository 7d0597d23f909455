import CCrypto
import Concurrency

/// A 32-byte hash value, stored inline.
public struct Digest256: Hashable, Sendable, CustomStringConvertible {
    private let words: (UInt64, UInt64, UInt64, UInt64)

    /// The number of bytes.
    public static let count = 32

    /// Creates a digest from the output of a hash function.
    /// - Parameter bytes: Exactly 32 bytes.
    public init(_ bytes: UnsafeRawBufferPointer) {
        precondition(bytes.count == Self.count, "a digest has 32 bytes")
        words = bytes.loadUnaligned(as: (UInt64, UInt64, UInt64, UInt64).self)
    }

    /// The bytes in order.
    public var bytes: [UInt8] { withUnsafeBytes { Array($0) } }

    /// The digest as 64 lowercase hexadecimal digits.
    public var description: String {
        String(unsafeUninitializedCapacity: Self.count * 2) { digits in
            withUnsafeBytes { bytes in
                for (index, byte) in bytes.enumerated() {
                    digits[2 * index] = hexadecimal(byte >> 4)
                    digits[2 * index + 1] = hexadecimal(byte & 15)
                }
            }
            return Self.count * 2
        }
    }

    /// Parses the form of ``description``; nil for anything else.
    public init?(_ hexadecimal: some StringProtocol) {
        let digits = hexadecimal.utf8
        guard digits.count == Self.count * 2 else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Self.count)
        var high: UInt8?
        for digit in digits {
            guard let value = nibble(digit) else { return nil }
            if let first = high {
                bytes.append(first << 4 | value)
                high = nil
            } else {
                high = value
            }
        }
        self = bytes.withUnsafeBytes { Digest256($0) }
    }

    /// Runs `body` with the 32 bytes.
    public func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        try Swift.withUnsafeBytes(of: words, body)
    }

    /// True if all bytes are equal.
    public static func == (left: Digest256, right: Digest256) -> Bool {
        left.words.0 == right.words.0 && left.words.1 == right.words.1
            && left.words.2 == right.words.2 && left.words.3 == right.words.3
    }

    /// Hashes one word, which is enough for a value that is a hash already.
    public func hash(into hasher: inout Hasher) { hasher.combine(words.0) }
}

private func hexadecimal(_ nibble: UInt8) -> UInt8 {
    nibble < 10 ? UInt8(ascii: "0") + nibble : UInt8(ascii: "a") + nibble - 10
}

private func nibble(_ digit: UInt8) -> UInt8? {
    switch digit {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
    default: nil
    }
}

/// SHA-256 (FIPS 180-4), implemented by OpenSSL, which uses the processor's SHA instructions if available.
///
/// A value hashes in pieces:
///
///     var hash = SHA256()
///     hash.update(first)
///     hash.update(second)
///     let digest = hash.finish()
///
/// libcrypto fails here only if memory or the algorithm itself is unavailable. This traps in that case.
public struct SHA256: ~Copyable {
    /// An EVP_MD_CTX. `@unchecked Sendable`: it has one owner at a time, the hash or the list of idle contexts.
    private struct Context: @unchecked Sendable {
        let pointer: OpaquePointer
    }

    private let context: Context

    /// Starts a hash.
    public init() {
        context = Self.idle.withLock { $0.popLast() } ?? Context(pointer: EVP_MD_CTX_new())
        precondition(EVP_DigestInit_ex2(context.pointer, Self.algorithm, nil) == 1, "libcrypto cannot start SHA-256")
    }

    deinit {
        let isKept = Self.idle.withLock { [context] idle in
            guard idle.count < 16 else { return false }
            idle.append(context)
            return true
        }
        if !isKept { EVP_MD_CTX_free(context.pointer) }
    }

    /// Adds `bytes` to the hash.
    public mutating func update(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { update($0) }
    }

    /// Adds `bytes` to the hash.
    public mutating func update(_ bytes: UnsafeRawBufferPointer) {
        precondition(EVP_DigestUpdate(context.pointer, bytes.baseAddress, bytes.count) == 1, "libcrypto cannot hash")
    }

    /// Returns the digest of all added bytes.
    public consuming func finish() -> Digest256 {
        withUnsafeTemporaryAllocation(byteCount: Digest256.count, alignment: 8) { [context] digest in
            let bytes = digest.assumingMemoryBound(to: UInt8.self)
            precondition(EVP_DigestFinal_ex(context.pointer, bytes.baseAddress, nil) == 1, "libcrypto cannot hash")
            return Digest256(UnsafeRawBufferPointer(digest))
        }
    }

    /// Returns the digest of `bytes`.
    public static func hash(_ bytes: [UInt8]) -> Digest256 {
        bytes.withUnsafeBytes { hash($0) }
    }

    /// Returns the digest of `text` in UTF-8.
    public static func hash(_ text: String) -> Digest256 {
        var text = text
        return text.withUTF8 { hash(UnsafeRawBufferPointer($0)) }
    }

    /// Returns the digest of `bytes`.
    public static func hash(_ bytes: UnsafeRawBufferPointer) -> Digest256 {
        var hash = SHA256()
        hash.update(bytes)
        return hash.finish()
    }

    /// Contexts ready for reuse: creating one costs more than a short hash.
    private static let idle = Lock<[Context]>([])

    /// The algorithm, fetched once. Looking it up by name for every hash would double the cost of a short one.
    ///
    /// `nonisolated(unsafe)`: an EVP_MD is never changed, and libcrypto manages its reference count.
    private nonisolated(unsafe) static let algorithm: OpaquePointer = {
        guard let algorithm = EVP_MD_fetch(nil, "SHA256", nil) else { preconditionFailure("libcrypto has no SHA-256") }
        return algorithm
    }()
}

/// Message authentication codes with SHA-256 (RFC 2104, FIPS 198-1), implemented by OpenSSL.
public enum HMACSHA256 {
    /// Returns the code of `message` under `key`. libcrypto fails here only if memory or the algorithm itself is
    /// unavailable. This traps in that case.
    public static func code(of message: [UInt8], key: [UInt8]) -> Digest256 {
        withUnsafeTemporaryAllocation(byteCount: Digest256.count, alignment: 8) { code in
            var length: UInt32 = 0
            let bytes = code.assumingMemoryBound(to: UInt8.self).baseAddress
            let result = HMAC(EVP_sha256(), key, Int32(key.count), message, message.count, bytes, &length)
            precondition(result != nil && length == UInt32(Digest256.count), "libcrypto cannot compute an HMAC")
            return Digest256(UnsafeRawBufferPointer(code))
        }
    }
}

/// Message authentication codes (RFC 2104) with the hash functions that signatures of other systems need, implemented
/// by OpenSSL. Halcyon's own signatures use ``HMACSHA256``.
public enum HMACAlgorithm: String, CaseIterable, Sendable {
    /// SHA-1, which is sufficient in an HMAC (RFC 6194, 3.3) but not recommended for new systems.
    case sha1
    /// SHA-256.
    case sha256
    /// SHA-512.
    case sha512

    /// Returns the code of `message` under `key`: 20, 32 or 64 bytes. It traps if libcrypto has no such function.
    public func code(of message: [UInt8], key: [UInt8]) -> [UInt8] {
        let function =
            switch self {
            case .sha1: EVP_sha1()
            case .sha256: EVP_sha256()
            case .sha512: EVP_sha512()
            }
        return [UInt8](unsafeUninitializedCapacity: Int(EVP_MAX_MD_SIZE)) { bytes, count in
            var length: UInt32 = 0
            let result = HMAC(function, key, Int32(key.count), message, message.count, bytes.baseAddress, &length)
            precondition(result != nil, "libcrypto cannot compute an HMAC with \(rawValue)")
            count = Int(length)
        }
    }
}

extension [UInt8] {
    /// True if the bytes are equal, compared in constant time. The number of bytes is no secret.
    public func isSame(inConstantTimeAs other: [UInt8]) -> Bool {
        count == other.count && CRYPTO_memcmp(self, other, count) == 0
    }
}

extension Digest256 {
    /// True if all bytes are equal, compared in constant time. For secrets and signatures.
    public func isSame(inConstantTimeAs other: Digest256) -> Bool {
        withUnsafeBytes { own in
            other.withUnsafeBytes { CRYPTO_memcmp(own.baseAddress, $0.baseAddress, Self.count) == 0 }
        }
    }
}

extension String {
    /// Returns 128 random bits as 32 lowercase hexadecimal digits: a unique name that cannot be guessed.
    public static func randomHexadecimal() -> String {
        (0..<2).map { _ in
            let digits = String(UInt64.random(in: .min ... .max), radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }.joined()
    }
}

/// Facts about the libcrypto library.
public enum DigestsLibrary {
    /// The version in use, such as `3.0.17`.
    public static var version: String { String(cString: OpenSSL_version(OPENSSL_VERSION_STRING)) }
}
