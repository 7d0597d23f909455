import Digests
import Formats
import HalcyonModel
import JSON
import Telemetry
import Threads

/// What the source tier keeps of a source: its bytes with what its origin said of them, or how loading it failed.
struct SourceEntry: Hashable, Sendable {
    /// What was said, without the bytes.
    var response: StoredResponse
    /// The bytes; none where loading failed.
    var body: [UInt8]
    /// How loading it failed.
    var failure: Failure?
}

/// An entry, as a store gives it back.
struct FoundEntry: Sendable {
    /// What was kept.
    let entry: SourceEntry
    /// Seconds since it was kept, by the store's own clock.
    let residentTime: Double
    /// The fence under which it was kept, where all workers look.
    var version: Int?
    /// The place in a trace of what it was loaded for, where that is known.
    var loadedFor: TraceContext?
}

/// On what terms an entry is kept.
struct KeepingTerms: Sendable {
    /// The fence of the lease under which it was loaded; 0 for none.
    var fence = 0
    /// The place in a trace of what it was loaded for, where that is recorded.
    var trace: TraceContext?
    /// Whether another worker waits for it.
    var isWanted: @Sendable () async -> Bool = { false }
}

/// A place where the source tier keeps entries, each for some time.
///
/// A store may lose what it has at any time, and gives back nothing that it is not sure of. It throws where it is out of
/// order; what it does not have is no error.
protocol SourceStore: Sendable {
    /// The entry under a key; nil where there is none.
    func find(_ key: String) async throws -> FoundEntry?
    /// Keeps an entry in place of what was there.
    /// - Parameter seconds: how long; above 0.
    /// - Returns: whether it is there now: not when it is too large, nor when something newer is there.
    @discardableResult
    func keep(_ entry: SourceEntry, as key: String, for seconds: Double, _ terms: KeepingTerms) async throws -> Bool
    /// Forgets what is there.
    func remove(_ key: String) async throws
}

// How entries are described where they are kept: one JSON object beside the bytes. An object that another version wrote and
// this one cannot read is no entry.

extension SourceEntry: JSONWritable {
    /// Writes all but the body.
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
        }
    }

    private static var version: Int { 1 }

    /// All but the body.
    var description: [UInt8] {
        var writer = JSONWriter(capacity: 512)
        writer.value(self)
        return writer.bytes
    }

    /// Reads what ``description`` said; nil for what is not understood.
    init?(description: [UInt8], body: [UInt8]) {
        do throws(JSONError) {
            let object = try JSON.parse(description, maximumSize: 1 << 20)
            guard try object.needed("version").integer(in: 1...1) == 1 else { return nil }
            response = StoredResponse(
                status: Int(try object.needed("status").integer(in: 0...999)),
                headers: try object.needed("headers").fields(), varied: try object.needed("varied").fields(),
                initialAge: try object.needed("initialAge").double())
            if let code = object.member("code") {
                guard let code = FailureCode(rawValue: try code.string()) else { return nil }
                var found = Failure(
                    code, try object.needed("message").string(), isRetryable: try object.needed("retryable").bool())
                found.retryAfter = try object.member("retryAfter")?.double()
                failure = found
            }
            self.body = body
        } catch {
            return nil
        }
    }
}

extension JSONElement {
    fileprivate func needed(_ name: String) throws(JSONError) -> JSONElement {
        guard let member = member(name) else { throw JSONError(.missing, "is missing", path: name) }
        return member
    }

    /// Names and values in turn.
    fileprivate func fields() throws(JSONError) -> HTTPFields {
        var texts: [String] = []
        try forEachElement { element throws(JSONError) in texts.append(try element.string()) }
        return HTTPFields(
            stride(from: 0, to: texts.count - 1, by: 2).map { HTTPFields.Field(texts[$0], texts[$0 + 1]) })
    }
}

extension Source {
    /// Whether the tier has anything to save: what is drawn, came with the job, or lies on the disk is as near as it can be.
    var isWorthKeeping: Bool {
        switch self {
        case .web, .s3, .video, .custom: true
        case .initials, .file, .data: false
        }
    }
}

extension SourceRequest {
    /// The key of its entry, in the slot of all keys of the source: those of the results that are made from it.
    var tierKey: String {
        "halcyon:{\(ResultKey.sourceHash(of: self) { SHA256.hash($0).description })}:source"
    }
}

extension CachedSource {
    /// What an entry holds, with the time at which its origin gave or confirmed it.
    init(_ entry: SourceEntry, completedAt: Double, _ fence: Int?, _ permit: Place?) {
        self.init(
            source: LoadedSource(
                body: entry.body, headers: entry.response.headers, status: entry.response.status,
                completedAt: completedAt),
            isFromCache: true, fence: fence, permit: permit)
    }
}
