import Concurrency
import Formats
import HalcyonModel
import Hashing
import JSON
import Telemetry

/// An entry of the source cache: the bytes of a source or of its archive copy with the response metadata, or the error
/// of loading it.
struct SourceEntry: Hashable, Sendable {
    /// The response metadata.
    var response: StoredResponse
    /// The bytes; empty for an error.
    var body: [UInt8]
    /// The error; nil if the source was loaded.
    var failure: JobError?
    /// The origin of the bytes if they are an archive copy.
    var copy: Copy?

    /// The origin of an archive copy.
    struct Copy: Hashable, Sendable {
        /// The source of this response.
        var original: ArchivedOriginal
        /// The settings with which the copy was made (``SourceArchive/identity``).
        var identity: String
    }
}

/// An entry returned by a store.
struct FoundEntry: Sendable {
    /// The stored entry.
    let entry: SourceEntry
    /// The time since it was stored in seconds, by the clock of the store.
    let residentTime: Double
    /// The fencing token of its bytes, 0 for none; nil if unknown.
    var fence: Int?
    /// The fencing token under which it was stored, if the store is shared by all workers.
    var version: Int?
    /// The span for which it was fetched, if known.
    var loadedFor: TraceContext?
}

/// Options for storing an entry.
struct StoreOptions: Sendable {
    /// The fencing token of the lease under which it was fetched; 0 for none.
    var fence = 0
    /// The fencing token under which an archive copy's original was fetched, if it is older.
    var since: Int?
    /// The span for which it was fetched, if it is recorded.
    var trace: TraceContext?
    /// Returns true if another worker waits for the entry.
    var isWanted: @Sendable () async -> Bool = { false }

    /// The lower of both fencing tokens. Data that was requested before a purge has a lower one than the purge.
    var oldestFence: Int { min(fence, since ?? .max) }
}

/// A store for entries of the source cache.
///
/// A store may lose entries at any time, and returns only entries that it can verify. It throws if it is unavailable. A
/// missing entry is not an error.
protocol SourceStore: Sendable {
    /// Returns the entry with a key; nil if there is none.
    func find(_ key: String) async throws -> FoundEntry?
    /// Stores an entry and replaces an older one.
    /// - Parameter seconds: The lifetime; above 0.
    /// - Returns: True if the entry was stored. False if it is too large, the store has a newer one, or the source was
    ///   purged after the request.
    @discardableResult
    func store(_ entry: SourceEntry, as key: String, for seconds: Double, _ terms: StoreOptions) async throws -> Bool
    /// Removes an entry.
    func remove(_ key: String) async throws
}

// The metadata of an entry is stored as a JSON object next to the bytes. An object of an incompatible version is
// treated as a missing entry.

extension SourceEntry: JSONWritable {
    /// Writes everything except the body.
    func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("version", Self.version)
            writer.member("status", response.status)
            writer.member("headers", response.headers.fields.flatMap { [$0.name, $0.value] })
            writer.member("varied", response.varied.fields.flatMap { [$0.name, $0.value] })
            writer.member("initialAge", response.initialAge)
            if let failure {
                writer.member("code", failure.code.rawValue)
                writer.member("message", failure.message)
                writer.member("retryable", failure.isRetryable)
                writer.member("retryAfter", failure.retryAfter)
            }
            if let copy {
                writer.name("copy")
                writer.object { writer in
                    writer.member("sha256", SHA256.hash(body).description)
                    writer.member("identity", copy.identity)
                    writer.member("format", copy.original.format.rawValue)
                    writer.member("width", copy.original.size.width)
                    writer.member("height", copy.original.size.height)
                    writer.member("bytes", copy.original.bytes)
                    writer.member("original", copy.original.sha256)
                }
            }
        }
    }

    private static var version: Int { 1 }

    /// The JSON metadata: everything except the body.
    var description: [UInt8] {
        var writer = JSONWriter(capacity: 512)
        writer.value(self)
        return writer.bytes
    }

    /// Parses ``description``. Returns nil if it is invalid, or if the bytes are a copy that is damaged.
    init?(description: [UInt8], body: [UInt8]) {
        do throws(JSONError) {
            let object = try JSON.parse(description, maximumSize: 1 << 20)
            guard try object.needed("version").integer(in: 1...1) == 1 else { return nil }
            response = StoredResponse(
                status: Int(try object.needed("status").integer(in: 0...999)),
                headers: try object.needed("headers").fields(), varied: try object.needed("varied").fields(),
                initialAge: try object.needed("initialAge").double())
            if let code = object.member("code") {
                guard let code = JobErrorCode(rawValue: try code.string()) else { return nil }
                var found = JobError(
                    code, try object.needed("message").string(), isRetryable: try object.needed("retryable").bool())
                found.retryAfter = try object.member("retryAfter")?.double()
                failure = found
            }
            self.body = body
            if let copy = object.member("copy") {
                guard try copy.needed("sha256").string() == SHA256.hash(body).description else { return nil }
                self.copy = try Copy(copy)
            }
        } catch {
            return nil
        }
    }
}

extension SourceEntry.Copy {
    fileprivate init(_ copy: JSONElement) throws(JSONError) {
        guard let format = ImageFormat(rawValue: try copy.needed("format").string()) else {
            throw JSONError(.invalid, "unknown format", path: "format")
        }
        identity = try copy.needed("identity").string()
        original = ArchivedOriginal(
            format: format,
            size: PixelSize(
                width: Int(try copy.needed("width").integer(in: 1...Int64(Int32.max))),
                height: Int(try copy.needed("height").integer(in: 1...Int64(Int32.max)))),
            bytes: Int(try copy.needed("bytes").integer(in: 0...Int64.max)),
            sha256: try copy.needed("original").string())
    }
}

extension JSONElement {
    fileprivate func needed(_ name: String) throws(JSONError) -> JSONElement {
        guard let member = member(name) else { throw JSONError(.missing, "is missing", path: name) }
        return member
    }

    /// Parses an array of alternating names and values.
    fileprivate func fields() throws(JSONError) -> HTTPFields {
        var texts: [String] = []
        try forEachElement { element throws(JSONError) in texts.append(try element.string()) }
        return HTTPFields(
            stride(from: 0, to: texts.count - 1, by: 2).map { HTTPFields.Field(texts[$0], texts[$0 + 1]) })
    }
}

extension Source {
    /// True if caching saves work. Sources that are drawn, part of the job, or on the local disk are not cached.
    var isWorthKeeping: Bool {
        switch self {
        case .web, .s3, .video, .custom: true
        case .initials, .file, .data: false
        }
    }
}

extension SourceRequest {
    /// The cache key of its entry. It shares the Redis hash slot with all keys of the source, including the results
    /// made from it.
    var tierKey: String {
        "halcyon:{\(ResultKey.sourceHash(of: self) { SHA256.hash($0).description })}:source"
    }

    /// The cache key of its archive copy.
    var copyKey: String { tierKey.dropLast("source".count) + "copy" }
}

extension CachedSource {
    /// Creates a source from an entry and the time at which its origin sent or confirmed it.
    init(_ entry: SourceEntry, completedAt: Double, _ fence: Int?, _ permit: SemaphorePermit?) {
        self.init(
            source: LoadedSource(
                body: entry.body, headers: entry.response.headers, status: entry.response.status,
                completedAt: completedAt),
            isFromCache: true, fence: fence, permit: permit, original: entry.copy?.original)
    }
}
