import Formats

/// An object of an S3-compatible store: `s3://bucket/key`, optionally with `?versionId=…`.
///
/// The key is percent-decoded, and `+` is a literal plus sign. The store's endpoint is a setting.
public struct S3Source: StringRepresentableSource {
    /// The URL scheme.
    public static let scheme = "s3"
    /// The maximum length of an object key, in bytes.
    public static let longestKey = 1024

    /// The URL as given in the job.
    public let text: String
    /// The bucket's name, valid by the rules for general purpose buckets.
    public let bucket: String
    /// The decoded object key.
    public let key: String
    /// The version id; nil for the newest version.
    public let version: String?

    /// Parses an `s3:` URL.
    /// - Throws: ``JobError`` `invalid_job` if the URL is malformed.
    public init(_ text: String) throws(JobError) {
        let bytes = Array(text.utf8)
        try checkCharacters(bytes, longest: WebURL.longest)
        let start = Self.scheme.utf8.count + 1
        guard bytes[start...].starts(with: "//".utf8) else { throw .invalidURL("expected s3://bucket/key") }
        let rest = bytes[(start + 2)...]
        guard let slash = rest.firstIndex(of: UInt8(ascii: "/")) else { throw .invalidURL("expected s3://bucket/key") }
        guard !rest.contains(where: { "#\\".utf8.contains($0) }) else {
            throw .invalidURL("an s3: URL must not contain # or \\; write them as %23 and %5C")
        }
        let end = rest.firstIndex(of: UInt8(ascii: "?")) ?? rest.endIndex
        self.text = text
        bucket = try Self.bucket(rest[..<slash])
        key = try Self.key(rest[slash..<max(slash, end)].dropFirst())
        version = try Self.version(rest[end...].dropFirst())
    }

    /// The normalized bucket, key and version, as used in cache keys.
    var cacheKey: String {
        "\(bucket)/\(PercentEncoding.encode(key, keeping: "/"))\(version.map { "?versionId=\($0)" } ?? "")"
    }

    fileprivate static func bucket(_ bytes: ArraySlice<UInt8>) throws(JobError) -> String {
        func isLetterOrDigit(_ byte: UInt8) -> Bool { (0x61...0x7a).contains(byte) || (0x30...0x39).contains(byte) }
        let parts = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard (3...63).contains(bytes.count), bytes.allSatisfy({ isLetterOrDigit($0) || "-.".utf8.contains($0) }),
            bytes.first.map(isLetterOrDigit) == true, bytes.last.map(isLetterOrDigit) == true,
            !parts.contains(where: \.isEmpty),
            // A bucket name must not look like an IPv4 address.
            parts.count != 4 || !parts.joined().allSatisfy({ (0x30...0x39).contains($0) })
        else {
            // The text may be a user and password, which are not supported.
            throw .invalidURL("invalid bucket name; expected 3 to 63 of a to z, 0 to 9, dots and hyphens")
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func key(_ encoded: ArraySlice<UInt8>) throws(JobError) -> String {
        let bytes = try decoded(encoded)
        guard !bytes.isEmpty else { throw .invalidURL("the object key is empty; expected s3://bucket/key") }
        // Proxies and some stores would remove such segments.
        let parts = bytes.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard !parts.contains(where: { $0.elementsEqual(".".utf8) || $0.elementsEqual("..".utf8) }) else {
            throw .invalidURL("the key must not contain . or .. segments")
        }
        return try text(bytes)
    }

    fileprivate static func decoded(_ encoded: ArraySlice<UInt8>) throws(JobError) -> [UInt8] {
        guard let bytes = PercentEncoding.decode(encoded) else { throw .invalidURL("invalid escape; write % as %25") }
        return bytes
    }

    /// Returns a key, or the beginning of one, as text.
    fileprivate static func text(_ bytes: [UInt8]) throws(JobError) -> String {
        guard bytes.count <= longestKey else { throw .invalidURL("the key is longer than \(longestKey) bytes") }
        guard !bytes.hasControlCharacter else { throw .invalidURL("the key contains control characters") }
        guard let key = String(validating: bytes, as: UTF8.self) else { throw .invalidURL("the key is not UTF-8") }
        return key
    }

    private static func version(_ query: ArraySlice<UInt8>) throws(JobError) -> String? {
        if query.isEmpty { return nil }
        let value = query.dropFirst("versionId=".utf8.count)
        guard query.starts(with: "versionId=".utf8), !value.isEmpty, value.allSatisfy(PercentEncoding.isUnreserved)
        else {
            throw .invalidURL("expected ?versionId=… or no query; write ? in a key as %3F")
        }
        return String(decoding: value, as: UTF8.self)
    }
}

/// The objects of a bucket whose keys begin with a prefix: `s3://bucket/path/`, or `s3://bucket/` for all of them.
///
/// The prefix is percent-decoded, as in ``S3Source``. It need not end with a slash.
public struct S3Prefix: Hashable, Sendable {
    /// The URL.
    public let text: String
    /// The bucket's name, valid by the rules for general purpose buckets.
    public let bucket: String
    /// The decoded beginning of the keys; empty for all objects.
    public let prefix: String

    /// Parses an `s3:` URL.
    /// - Throws: ``JobError`` `invalid_job` if the URL is malformed.
    public init(_ text: String) throws(JobError) {
        let bytes = Array(text.utf8)
        try checkCharacters(bytes, longest: WebURL.longest)
        let start = "\(S3Source.scheme)://"
        guard bytes.starts(with: start.utf8), let slash = bytes.dropFirst(start.utf8.count).firstIndex(of: 0x2f) else {
            throw .invalidURL("expected s3://bucket/prefix/, or s3://bucket/ for all objects")
        }
        guard !bytes.contains(where: { "?#\\".utf8.contains($0) }) else {
            throw .invalidURL("a prefix must not contain ?, # or \\; write them as %3F, %23 and %5C")
        }
        self.text = text
        bucket = try S3Source.bucket(bytes[start.utf8.count..<slash])
        prefix = try S3Source.text(S3Source.decoded(bytes[slash...].dropFirst()))
    }

    /// Returns the source of an object of the bucket.
    public func source(of key: String) -> String {
        "\(S3Source.scheme)://\(bucket)/\(PercentEncoding.encode(key, keeping: "/"))"
    }
}

/// A part of a list of objects, in the order of their keys.
public struct S3ObjectPage: Sendable {
    /// An object.
    public struct Object: Sendable {
        /// The key.
        public let key: String
        /// The size in bytes.
        public let bytes: Int
        /// The time of the last change, in seconds since 1970; 0 if it is unknown.
        public let changedAt: Double

        /// Creates an object from all values.
        public init(key: String, bytes: Int, changedAt: Double) {
            self.key = key
            self.bytes = bytes
            self.changedAt = changedAt
        }

        /// True for the empty objects with which some tools represent folders.
        public var isFolder: Bool { bytes == 0 && key.utf8.last == UInt8(ascii: "/") }
    }

    /// The objects.
    public let objects: [Object]
    /// True if more objects follow.
    public let isTruncated: Bool
    /// The token with which a truncated list continues, also after a page without objects; nil if the store sent none.
    public let continuation: String?

    /// Creates a page from all values.
    public init(_ objects: [Object], isTruncated: Bool, continuation: String? = nil) {
        self.objects = objects
        self.isTruncated = isTruncated
        self.continuation = continuation
    }
}
