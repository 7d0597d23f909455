import Concurrency
import Formats
import HalcyonModel

/// A memory cache of assets that many jobs share, such as watermarks. Concurrent requests for an asset share one load,
/// and the result is cached while it is fresh.
public actor AssetCache {
    private let loadOne: @Sendable (SourceRequest, SourceCacheUse) async throws -> LoadedSource
    private let defaultLifetime: Double
    private var kept: AssetLRUCache
    /// The number of purges. A load that was in flight during a purge is not cached.
    private var purges = 0
    private let singleFlight = SingleFlightGroup<[UInt8], LoadedSource>()

    /// Creates a cache.
    /// - Parameters:
    ///   - maximumBytes: The size limit of all cached assets together.
    ///   - defaultLifetime: The freshness lifetime in seconds if the origin specifies none.
    ///   - loadOne: Loads a source with the given use of the source cache.
    public init(
        maximumBytes: Int, defaultLifetime: Double,
        _ loadOne: @escaping @Sendable (SourceRequest, SourceCacheUse) async throws -> LoadedSource
    ) {
        self.loadOne = loadOne
        self.defaultLifetime = defaultLifetime
        kept = AssetLRUCache(capacity: maximumBytes)
    }

    /// Returns the asset from memory, or loads it. Concurrent callers share one load.
    ///
    /// Freshness follows the rules of the result cache: `max-age` of Cache-Control, else Expires, else the default. It
    /// is counted from when the origin sent or confirmed the asset. A response that is stale or must not be stored is
    /// not cached. It is shared only by the callers that wait while it is loaded. An error is delivered to all waiters
    /// and is not cached.
    ///
    /// - Throws: ``JobError``; `CancellationError` when the task is cancelled. Other waiters are not affected. When the
    ///   last waiter is cancelled, the load is cancelled.
    public func load(_ request: SourceRequest) async throws -> LoadedSource {
        let name = request.name
        if let found = kept.source(name, at: .now) { return found }
        let purges = purges
        let result = try await singleFlight.run([name]) { [self] operation, _ in
            let source = try await loadOne(request, .standard)
            await store(source, as: name, since: purges)
            operation.complete(name, with: source)
        }[name]
        guard let result else { throw CancellationError() }
        return result.value
    }

    /// Removes an asset.
    public func forget(_ request: SourceRequest) {
        purges += 1
        kept.remove(request.name)
    }

    private func store(_ source: LoadedSource, as name: [UInt8], since purges: Int) {
        guard purges == self.purges else { return }
        if let seconds = lifetime(of: source) { kept.store(source, as: name, until: .now + .seconds(seconds)) }
    }

    /// Returns the asset from memory or the source cache, without contacting its origin.
    /// - Throws: ``JobError``, `not_found` if it is in neither; `CancellationError`.
    public func loadKept(_ request: SourceRequest) async throws -> LoadedSource {
        if let found = kept.source(request.name, at: .now) { return found }
        return try await loadOne(request, .onlyKept)
    }

    /// Loads the bytes of all given assets for a tenant.
    /// - Parameter onlyKept: True if no origin may be contacted.
    /// - Throws: The errors of ``load(_:)`` or ``loadKept(_:)`` for the first asset that fails. The message names the
    ///   asset.
    public nonisolated func load(
        all sources: Set<Source>, of tenant: String?, onlyKept: Bool = false
    ) async throws -> [Source: [UInt8]] {
        try await withThrowingTaskGroup(of: (Source, [UInt8]).self) { group in
            for source in sources {
                group.addTask {
                    let request = SourceRequest(source, tenant: tenant)
                    do {
                        return (source, try await onlyKept ? self.loadKept(request).body : self.load(request).body)
                    } catch let failure as JobError {
                        throw failure.within("the asset \(source.shownText)")
                    }
                }
            }
            var bodies: [Source: [UInt8]] = [:]
            for try await (source, body) in group { bodies[source] = body }
            return bodies
        }
    }

    /// Returns the seconds for which an asset is fresh from now on, above 0; nil if it is not cached.
    private func lifetime(of source: LoadedSource) -> Double? {
        let lifetime = ResultTTL(maxAge: 0, headers: source.headers, completedAt: source.completedAt)
        let age = Timestamp.now.seconds - source.completedAt
        return ResultTTLPolicy.response.seconds(of: lifetime, age: age, standard: defaultLifetime, cut: 0)
    }

    /// The number of loads in flight.
    nonisolated var loading: Int { singleFlight.operationCount }
    /// Returns the number of waiters for an asset.
    nonisolated func waiters(for request: SourceRequest) -> Int { singleFlight.waiting(for: request.name) }
}

extension SourceRequest {
    /// The bytes of the canonical text. Swift compares strings by canonical equivalence, but an origin may distinguish
    /// such strings.
    fileprivate var name: [UInt8] { Array(canonicalText.utf8) }
}

/// An LRU cache of assets with a byte limit. Entries expire when they are no longer fresh. A pure value.
struct AssetLRUCache {
    private struct Entry {
        let source: LoadedSource
        let expiry: ContinuousClock.Instant
    }

    /// The minimum cost of an entry, because even a small asset has overhead.
    static let leastCost = 4096

    private var entries: LRUCache<[UInt8], Entry>

    /// The total cost of the entries.
    var bytes: Int { entries.cost }

    /// Creates a cache.
    /// - Parameter capacity: The byte limit of all assets together; 0 disables the cache.
    init(capacity: Int) { entries = LRUCache(capacity: capacity) }

    /// Returns the cached asset with this name; nil if there is none or it is no longer fresh.
    mutating func source(_ name: [UInt8], at now: ContinuousClock.Instant) -> LoadedSource? {
        guard let entry = entries.value(for: name) else { return nil }
        guard now < entry.expiry else {
            entries.remove(name)
            return nil
        }
        return entry.source
    }

    /// Removes the asset with this name.
    mutating func remove(_ name: [UInt8]) { entries.remove(name) }

    /// Stores an asset and replaces any with the same name, unless it alone exceeds the limit.
    mutating func store(_ source: LoadedSource, as name: [UInt8], until expiry: ContinuousClock.Instant) {
        entries.insert(Entry(source: source, expiry: expiry), for: name, cost: max(Self.leastCost, source.body.count))
    }
}
