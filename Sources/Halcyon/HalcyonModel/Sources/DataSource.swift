/// Bytes that came with the job: a `data:` URL (RFC 2397), or base64 with a name.
///
/// Two are the same when they are known by the same: what a producer calls by one name is one image.
public struct DataSource: Sendable {
    /// What its URLs begin with, before the colon.
    public static let scheme = "data"
    /// Characters of the longest name taken.
    public static let longestName = 128

    /// The bytes; none in one that was decoded.
    public let bytes: [UInt8]
    /// What it is known by in keys, and the subject of its events: the bytes themselves would fill both.
    public let text: String

    /// The name that they are known by; nil for bytes that are known by themselves.
    public var name: String? {
        let prefix = Self.namePrefix.utf8
        return text.utf8.starts(with: prefix) ? String(decoding: text.utf8.dropFirst(prefix.count), as: UTF8.self) : nil
    }

    private static let namePrefix = "data:key="

    /// Bytes that are known by themselves.
    /// - Parameters:
    ///   - bytes: the image, at least one byte.
    ///   - sha256: gives the lower-case hexadecimal SHA-256 of the bytes.
    /// - Throws: ``Failure`` `invalid_job` when there are none.
    public init(_ bytes: [UInt8], sha256: ([UInt8]) -> String) throws(Failure) {
        guard !bytes.isEmpty else { throw Failure(.invalidJob, "there are no bytes in it") }
        self.bytes = bytes
        text = "data:sha256=\(sha256(bytes))"
    }

    /// Bytes that are known by a name.
    /// - Throws: ``Failure`` `invalid_job` when there are none, or the name is none.
    public init(_ bytes: [UInt8], name: String) throws(Failure) {
        guard !bytes.isEmpty else { throw Failure(.invalidJob, "there are no bytes in it") }
        guard (1...Self.longestName).contains(name.unicodeScalars.count), !name.utf8.hasControlCharacter else {
            throw Failure(
                .invalidJob, "cacheKey: expected 1 to \(Self.longestName) characters, none of them a control character")
        }
        self.bytes = bytes
        text = Self.namePrefix + name
    }
}

extension DataSource: Hashable {
    /// Whether they are known by the same.
    public static func == (left: DataSource, right: DataSource) -> Bool {
        left.text.utf8.elementsEqual(right.text.utf8)
    }

    /// Of what it is known by.
    public func hash(into hasher: inout Hasher) {
        for byte in text.utf8 { hasher.combine(byte) }
    }
}

extension DataSource: Codable {
    /// One that can be told from others, and not be loaded.
    public init(from decoder: any Decoder) throws {
        bytes = []
        text = try decoder.singleValueContainer().decode(String.self)
    }

    /// Without its bytes: who renders gets those of all sources beside the jobs.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(text)
    }
}
