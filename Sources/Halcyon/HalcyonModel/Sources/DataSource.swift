/// Image bytes contained in the job: a `data:` URL (RFC 2397), or base64 with an optional name.
///
/// Two sources are equal if their ``text`` is equal. Bytes with the same name count as the same image.
public struct DataSource: Sendable {
    /// The URL scheme.
    public static let scheme = "data"
    /// The maximum length of a name, in characters.
    public static let longestName = 128

    /// The bytes; empty after decoding with `Codable`.
    public let bytes: [UInt8]
    /// The identity in cache keys and the subject of events: a name or a hash instead of the bytes.
    public let text: String

    /// The name given by the job; nil if the bytes are identified by their hash.
    public var name: String? {
        let prefix = Self.namePrefix.utf8
        return text.utf8.starts(with: prefix) ? String(decoding: text.utf8.dropFirst(prefix.count), as: UTF8.self) : nil
    }

    private static let namePrefix = "data:key="

    /// Creates a source that is identified by the hash of its bytes.
    /// - Parameters:
    ///   - bytes: The image, at least one byte.
    ///   - sha256: A function that returns the lower-case hexadecimal SHA-256 of the bytes.
    /// - Throws: ``JobError`` `invalid_job` if `bytes` is empty.
    public init(_ bytes: [UInt8], sha256: ([UInt8]) -> String) throws(JobError) {
        guard !bytes.isEmpty else { throw JobError(.invalidJob, "the data is empty") }
        self.bytes = bytes
        text = "data:sha256=\(sha256(bytes))"
    }

    /// Creates a source that is identified by a name.
    /// - Throws: ``JobError`` `invalid_job` if `bytes` is empty or the name is invalid.
    public init(_ bytes: [UInt8], name: String) throws(JobError) {
        guard !bytes.isEmpty else { throw JobError(.invalidJob, "the data is empty") }
        try Self.check(name: name)
        self.bytes = bytes
        text = Self.namePrefix + name
    }

    /// - Throws: ``JobError`` `invalid_job` if a name of an image in cache keys is invalid.
    static func check(name: String) throws(JobError) {
        guard (1...longestName).contains(name.unicodeScalars.count), !name.utf8.hasControlCharacter else {
            throw JobError(
                .invalidJob, "cacheKey: expected 1 to \(longestName) characters, none of them a control character")
        }
    }
}

extension DataSource: Hashable {
    /// Returns true if both sources have the same ``text``, byte for byte.
    public static func == (left: DataSource, right: DataSource) -> Bool {
        left.text.utf8.elementsEqual(right.text.utf8)
    }

    /// Hashes ``text``.
    public func hash(into hasher: inout Hasher) {
        for byte in text.utf8 { hasher.combine(byte) }
    }
}

extension DataSource: Codable {
    /// Decodes the identity only. The decoded source can be compared, but not loaded.
    public init(from decoder: any Decoder) throws {
        bytes = []
        text = try decoder.singleValueContainer().decode(String.self)
    }

    /// Encodes the identity without the bytes. Render processes receive the bytes of sources separately.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(text)
    }
}
