import Formats
import HalcyonModel
import HalcyonSources

/// The options of the result store.
public struct ResultStoreOptions: Sendable {
    /// The place of the objects.
    public var location: ResultStoreLocation
    /// The endpoint and the credentials of the store of a bucket.
    public var s3 = S3Options()
    /// The value of `User-Agent` in requests to it.
    public var userAgent: String?
    /// The URL under which clients find the objects, or the files that have names, without a slash at the end; nil if
    /// they cannot.
    public var publicURL: String?
    /// The names of files; nil if files have no names of their own.
    public var names: FileNameTemplate?
    /// The maximum size of results that wait to be written, in bytes.
    public var queueBytes = 64 << 20
    /// The maximum size of a result in the store, in bytes.
    public var maximumBytes = 64 << 20
    /// The time after which a read counts as failed. The result is then rendered.
    public var readTimeout = Duration.seconds(5)
    /// The time after which a write counts as failed.
    public var writeTimeout = Duration.seconds(60)
    /// The budget of a folder in bytes; nil for all but a tenth of the file system.
    public var budget: Int?
    /// The interval at which the tombstones are read again, for purges by others that were not broadcast to this
    /// process.
    public var refreshInterval = Duration.seconds(30)
    /// The interval at which one worker of the cluster deletes expired and purged objects.
    public var sweepInterval = Duration.seconds(300)
    /// The time after which a tombstone is removed. No work in flight may be older.
    public var tombstoneLifetime = Duration.seconds(86_400)

    /// Creates default options.
    public init(_ location: ResultStoreLocation) { self.location = location }

    /// The URL under which clients find a result of a source; nil if they cannot.
    public func publicURL(of key: ResultKey, _ metadata: ResultMetadata, from source: Source) -> String? {
        let file = names?.name(of: key, metadata, from: source)
        return publicURL(ofObject: file.map { ObjectName.files + $0 } ?? ObjectName.result(key))
    }

    /// The URL under which clients find an object; nil if they cannot.
    func publicURL(ofObject name: String) -> String? {
        guard names != nil else { return publicURL.map { "\($0)/\(name)" } }
        guard name.hasPrefix(ObjectName.files) else { return nil }
        return publicURL.map { "\($0)/\(name.dropFirst(ObjectName.files.count))" }
    }
}

/// The place of the objects of a result store.
public enum ResultStoreLocation: Hashable, Sendable, CustomStringConvertible {
    /// A folder, by its absolute path.
    case folder(String)
    /// A bucket, and a prefix of all names, which is empty or ends with `/`.
    case s3(bucket: String, prefix: String)

    /// The location as it is written in settings.
    public var description: String {
        switch self {
        case .folder(let path): "file://\(path)"
        case .s3(let bucket, let prefix): "s3://\(bucket)/\(prefix)"
        }
    }

    /// Parses `file:///path` or `s3://bucket/prefix`; nil for anything else.
    public init?(_ text: String) {
        if text.hasPrefix("file://") {
            let path = text.dropFirst(7)
            guard path.hasPrefix("/"), Self.isPlain(path.dropFirst()) else { return nil }
            self = .folder(String(path.reversed().drop { $0 == "/" }.reversed()))
        } else if text.hasPrefix("s3://") {
            let parts = text.dropFirst(5).split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
            let prefix = parts.count > 1 ? parts[1].split(separator: "/").joined(separator: "/") : ""
            guard (3...63).contains(parts[0].utf8.count), Self.isPlain(parts[0]),
                parts.count == 1 || parts[1].isEmpty || Self.isPlain(parts[1]), prefix.utf8.count <= 512
            else { return nil }
            self = .s3(bucket: String(parts[0]), prefix: prefix.isEmpty ? "" : prefix + "/")
        } else {
            return nil
        }
    }

    /// True if no segment is `.` or `..`, and no character is a control character or has a meaning in URLs.
    private static func isPlain(_ path: Substring) -> Bool {
        !path.isEmpty && path.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f && !"?#%\\".utf8.contains($0) }
            && path.split(separator: "/").allSatisfy { $0 != "." && $0 != ".." }
    }
}
