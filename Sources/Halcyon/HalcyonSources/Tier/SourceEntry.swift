import HalcyonModel

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
    func keep(_ entry: SourceEntry, as key: String, for seconds: Double) async throws
    /// Forgets what is there.
    func remove(_ key: String) async throws
}
