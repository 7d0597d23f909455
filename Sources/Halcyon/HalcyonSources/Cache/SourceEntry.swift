import HalcyonModel
import Telemetry

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
