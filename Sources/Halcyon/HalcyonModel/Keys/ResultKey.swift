/// The names that one output of one source has in Redis.
///
/// All keys of a source stand in one slot of a Redis Cluster: the source's hash is their hash tag.
public struct ResultKey: Hashable, Sendable, CustomStringConvertible {
    /// The source's hash: 32 hexadecimal digits.
    public let sourceHash: String
    /// The variant's hash: 32 hexadecimal digits.
    public let variantHash: String

    /// - Parameters:
    ///   - tenant: whose result it is.
    ///   - sha256: gives the lower-case hexadecimal SHA-256 of a text's UTF-8 bytes; the first 128 bits are used.
    public init(source: Source, tenant: String? = nil, variant: Variant, sha256: (String) -> String) {
        sourceHash = Self.first128Bits(of: sha256(source.canonicalText(of: tenant)))
        variantHash = Self.first128Bits(of: sha256(variant.canonicalText))
    }

    private static func first128Bits(of digits: String) -> String {
        String(decoding: digits.utf8.prefix(32), as: UTF8.self)
    }

    /// The key of the result, a hash with the fields `body`, `facts`, `expiresAt`, `storedAt` and `rule`.
    public var description: String { "halcyon:{\(sourceHash)}:\(variantHash)" }
}
