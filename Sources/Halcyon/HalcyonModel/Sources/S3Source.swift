import Formats

/// An object of an S3-compatible store: `s3://bucket/key`, perhaps with `?versionId=…`.
///
/// It is a URL like all others: the key is percent-decoded, `+` is a plus. The store's address is a setting.
public struct S3Source: TextualSource {
    /// What its URLs begin with, before the colon.
    public static let scheme = "s3"
    /// Bytes of the longest key of an object.
    public static let longestKey = 1024

    /// As the job gave it.
    public let text: String
    /// The bucket's name, by the rules for general purpose buckets.
    public let bucket: String
    /// The object's key, decoded.
    public let key: String
    /// Which version; nil for the newest.
    public let version: String?

    /// - Throws: ``Failure`` `invalid_job`.
    public init(_ text: String) throws(Failure) {
        let bytes = Array(text.utf8)
        try checkCharacters(bytes, longest: WebURL.longest)
        let start = Self.scheme.utf8.count + 1
        guard bytes[start...].starts(with: "//".utf8) else { throw .invalidURL("expected s3://bucket/key") }
        let rest = bytes[(start + 2)...]
        guard let slash = rest.firstIndex(of: UInt8(ascii: "/")) else { throw .invalidURL("expected s3://bucket/key") }
        guard !rest.contains(where: { "#\\".utf8.contains($0) }) else {
            throw .invalidURL("an s3: URL has no # or \\; write them as %23 and %5C")
        }
        let end = rest.firstIndex(of: UInt8(ascii: "?")) ?? rest.endIndex
        self.text = text
        bucket = try Self.bucket(rest[..<slash])
        key = try Self.key(rest[slash..<max(slash, end)].dropFirst())
        version = try Self.version(rest[end...].dropFirst())
    }

    /// The forms of bucket, key and version that keys are made of.
    var cacheKey: String {
        "\(bucket)/\(PercentEncoding.encode(key, keeping: "/"))\(version.map { "?versionId=\($0)" } ?? "")"
    }

    private static func bucket(_ bytes: ArraySlice<UInt8>) throws(Failure) -> String {
        func isLetterOrDigit(_ byte: UInt8) -> Bool { (0x61...0x7a).contains(byte) || (0x30...0x39).contains(byte) }
        let parts = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard (3...63).contains(bytes.count), bytes.allSatisfy({ isLetterOrDigit($0) || "-.".utf8.contains($0) }),
            bytes.first.map(isLetterOrDigit) == true, bytes.last.map(isLetterOrDigit) == true,
            !parts.contains(where: \.isEmpty),
            // No name looks like an address.
            parts.count != 4 || !parts.joined().allSatisfy({ (0x30...0x39).contains($0) })
        else {
            throw .invalidURL(
                "\(String(decoding: bytes, as: UTF8.self)) is no bucket: 3 to 63 of a to z, 0 to 9, dots and hyphens")
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func key(_ encoded: ArraySlice<UInt8>) throws(Failure) -> String {
        guard let bytes = PercentEncoding.decode(encoded) else { throw .invalidURL("% is written as %25") }
        guard !bytes.isEmpty else { throw .invalidURL("the URL names no object: s3://bucket/key") }
        guard bytes.count <= longestKey else { throw .invalidURL("keys of objects end at \(longestKey) bytes") }
        guard !bytes.hasControlCharacter else { throw .invalidURL("a key of an object has no control characters here") }
        // Programs on the way, and some stores, would take them out.
        let parts = bytes.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard !parts.contains(where: { $0.elementsEqual(".".utf8) || $0.elementsEqual("..".utf8) }) else {
            throw .invalidURL("no part of a key may be . or ..")
        }
        guard let key = String(validating: bytes, as: UTF8.self) else { throw .invalidURL("the key is not UTF-8") }
        return key
    }

    private static func version(_ query: ArraySlice<UInt8>) throws(Failure) -> String? {
        if query.isEmpty { return nil }
        let value = query.dropFirst("versionId=".utf8.count)
        guard query.starts(with: "versionId=".utf8), !value.isEmpty, value.allSatisfy(PercentEncoding.isUnreserved)
        else {
            throw .invalidURL("expected ?versionId=… or no query; a ? in a key is written as %3F")
        }
        return String(decoding: value, as: UTF8.self)
    }
}
