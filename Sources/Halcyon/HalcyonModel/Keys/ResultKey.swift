/// The key of a result in Redis: one output of one source.
///
/// All keys of a source are in the same hash slot of a Redis Cluster, because the source's hash is their hash tag.
public struct ResultKey: Hashable, Sendable, CustomStringConvertible {
    /// The source's hash: 32 hexadecimal digits.
    public let sourceHash: String
    /// The variant's hash: 32 hexadecimal digits.
    public let variantHash: String

    /// Creates the key of a result.
    /// - Parameters:
    ///   - request: The request for the source.
    ///   - variant: The output.
    ///   - sha256: A function that returns the lower-case hexadecimal SHA-256 of a text's UTF-8 bytes. The first 128
    ///     bits are used.
    public init(_ request: SourceRequest, variant: Variant, sha256: (String) -> String) {
        sourceHash = Self.sourceHash(of: request, sha256: sha256)
        variantHash = Self.first128Bits(of: sha256(variant.canonicalText))
    }

    /// Parses a key; returns nil if the text is malformed.
    public init?(_ text: String) {
        let parts = Array(text.utf8).split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0].elementsEqual("halcyon".utf8), parts[1].count == 34,
            parts[1].first == UInt8(ascii: "{"), parts[1].last == UInt8(ascii: "}"),
            let source = Self.hash(parts[1].dropFirst().dropLast()), let variant = Self.hash(parts[2])
        else { return nil }
        (sourceHash, variantHash) = (source, variant)
    }

    private static func hash(_ digits: ArraySlice<UInt8>) -> String? {
        let isHash =
            digits.count == 32 && digits.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
        return isHash ? String(decoding: digits, as: UTF8.self) : nil
    }

    /// Returns the hash of a source: the hash tag of all its keys.
    public static func sourceHash(of request: SourceRequest, sha256: (String) -> String) -> String {
        first128Bits(of: sha256(request.canonicalText))
    }

    private static func first128Bits(of digits: String) -> String {
        String(decoding: digits.utf8.prefix(32), as: UTF8.self)
    }

    /// The Redis key of the result: a hash with the fields `body`, `facts`, `expiresAt`, `storedAt`, `rule`,
    /// `fence` and `since`.
    public var description: String { "halcyon:{\(sourceHash)}:\(variantHash)" }
}
