import CCrypto
import Threads

/// SHA-256 (FIPS 180-4) by OpenSSL, which uses the processor's own instructions where there are any.
///
/// A value hashes in pieces:
///
///     var hash = SHA256()
///     hash.update(first)
///     hash.update(second)
///     let digest = hash.finish()
///
/// libcrypto fails here only for want of memory or of the algorithm itself, and then this traps.
public struct SHA256: ~Copyable {
    /// An EVP_MD_CTX. `@unchecked Sendable`: one owner at a time has it, the hash or the list of idle ones.
    private struct Context: @unchecked Sendable {
        let pointer: OpaquePointer
    }

    private let context: Context

    /// A hash of nothing so far.
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

    /// Hashes `bytes` after what came before.
    public mutating func update(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { update($0) }
    }

    /// Hashes `bytes` after what came before.
    public mutating func update(_ bytes: UnsafeRawBufferPointer) {
        precondition(EVP_DigestUpdate(context.pointer, bytes.baseAddress, bytes.count) == 1, "libcrypto cannot hash")
    }

    /// The digest of all that was given.
    public consuming func finish() -> Digest256 {
        withUnsafeTemporaryAllocation(byteCount: Digest256.count, alignment: 8) { [context] digest in
            let bytes = digest.assumingMemoryBound(to: UInt8.self)
            precondition(EVP_DigestFinal_ex(context.pointer, bytes.baseAddress, nil) == 1, "libcrypto cannot hash")
            return Digest256(UnsafeRawBufferPointer(digest))
        }
    }

    /// The digest of `bytes`.
    public static func hash(_ bytes: [UInt8]) -> Digest256 {
        bytes.withUnsafeBytes { hash($0) }
    }

    /// The digest of the UTF-8 of `text`.
    public static func hash(_ text: String) -> Digest256 {
        var text = text
        return text.withUTF8 { hash(UnsafeRawBufferPointer($0)) }
    }

    /// The digest of `bytes`.
    public static func hash(_ bytes: UnsafeRawBufferPointer) -> Digest256 {
        var hash = SHA256()
        hash.update(bytes)
        return hash.finish()
    }

    /// Contexts that wait for their next hash: starting one afresh costs more than a short hash itself.
    private static let idle = Lock<[Context]>([])

    /// Fetched once; asking for it by name at every hash would double the cost of a short one.
    ///
    /// `nonisolated(unsafe)`: an EVP_MD is never changed, and its reference count is libcrypto's own affair.
    private nonisolated(unsafe) static let algorithm: OpaquePointer = {
        guard let algorithm = EVP_MD_fetch(nil, "SHA256", nil) else { preconditionFailure("libcrypto has no SHA-256") }
        return algorithm
    }()
}
