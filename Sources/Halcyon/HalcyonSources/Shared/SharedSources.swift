import HalcyonModel
import Threads

/// Sources that many jobs have in common, such as watermarks: each is loaded once however many ask for it at the same time,
/// and kept in memory for as long as it is fresh.
public actor SharedSources {
    private let loadOne: @Sendable (SourceRequest, SourceCacheUse) async throws -> LoadedSource
    private let defaultLifetime: Double
    private var kept: KeptSources
    /// How often something was forgotten: what was on its way then is not kept.
    private var purges = 0
    private let flights = SingleFlight<[UInt8], LoadedSource>()

    /// - Parameters:
    ///   - loadOne: loads a source, by use of the source tier as it is asked to.
    ///   - maximumBytes: of all kept sources together.
    ///   - defaultLifetime: seconds for which a source is fresh about which its origin said nothing.
    public init(
        maximumBytes: Int, defaultLifetime: Double,
        _ loadOne: @escaping @Sendable (SourceRequest, SourceCacheUse) async throws -> LoadedSource
    ) {
        self.loadOne = loadOne
        self.defaultLifetime = defaultLifetime
        kept = KeptSources(capacity: maximumBytes)
    }

    /// The source, from memory or from where it is being loaded.
    ///
    /// Freshness is the result tier's: Cache-Control's max-age, else Expires, else the default; what must not be stored is not
    /// kept, and is shared only by those who ask while it is on its way. A failure is told to all who wait and not kept.
    ///
    /// - Throws: ``Failure``; `CancellationError` when the task is cancelled, which leaves other waiters alone and, when it
    ///   was the last one, ends the load.
    public func load(_ request: SourceRequest) async throws -> LoadedSource {
        let name = request.name
        if let found = kept.source(name, at: .now) { return found }
        let purges = purges
        let result = try await flights.run([name]) { [self] operation, _ in
            let source = try await loadOne(request, .standard)
            await keep(source, as: name, since: purges)
            operation.complete(name, with: source)
        }[name]
        guard let result else { throw CancellationError() }
        return result.value
    }

    /// Forgets a source.
    public func forget(_ request: SourceRequest) {
        purges += 1
        kept.remove(request.name)
    }

    private func keep(_ source: LoadedSource, as name: [UInt8], since purges: Int) {
        guard purges == self.purges else { return }
        if let seconds = lifetime(of: source) { kept.keep(source, as: name, until: .now + .seconds(seconds)) }
    }

    /// The source from memory, or from the source tier, as far as it may be used without a word from its origin.
    /// - Throws: ``Failure``, `not_found` where it is in neither; `CancellationError`.
    public func loadKept(_ request: SourceRequest) async throws -> LoadedSource {
        if let found = kept.source(request.name, at: .now) { return found }
        return try await loadOne(request, .onlyKept)
    }

    /// The bytes of all of these, for a tenant.
    /// - Parameter onlyKept: whether no origin is to be asked for anything.
    /// - Throws: as ``load(_:)`` or ``loadKept(_:)``, for the first that fails; the message names it.
    public nonisolated func load(
        all sources: Set<Source>, of tenant: String?, onlyKept: Bool = false
    ) async throws -> [Source: [UInt8]] {
        try await withThrowingTaskGroup(of: (Source, [UInt8]).self) { group in
            for source in sources {
                group.addTask {
                    let request = SourceRequest(source, tenant: tenant)
                    do {
                        return (source, try await onlyKept ? self.loadKept(request).body : self.load(request).body)
                    } catch let failure as Failure {
                        throw failure.within("the asset \(source.shownText)")
                    }
                }
            }
            var bodies: [Source: [UInt8]] = [:]
            for try await (source, body) in group { bodies[source] = body }
            return bodies
        }
    }

    private func lifetime(of source: LoadedSource) -> Double? {
        switch ResultLifetime(maxAge: 0, headers: source.headers, completedAt: source.completedAt) {
        case .seconds(let seconds): seconds
        case .standard: defaultLifetime
        case .standardUpTo(let seconds): min(defaultLifetime, seconds)
        case .notStored: nil
        }
    }

    /// How many loads are under way.
    nonisolated var loading: Int { flights.operationCount }
    /// How many wait for a source.
    nonisolated func waiters(for request: SourceRequest) -> Int { flights.waiting(for: request.name) }
}

extension SourceRequest {
    /// The bytes of its canonical text: Swift's strings are equal when they look the same, and origins may tell those apart.
    fileprivate var name: [UInt8] { Array(canonicalText.utf8) }
}

/// Sources kept in memory, each as long as it is fresh, all of them within a number of bytes: what has not been used for
/// longest goes first. A pure value.
struct KeptSources {
    private struct Entry {
        let source: LoadedSource
        let expiry: ContinuousClock.Instant
    }

    /// What an entry counts for at least: a small source takes more than its bytes.
    static let leastCost = 4096

    private var entries: LRUCache<[UInt8], Entry>

    /// What the entries count for.
    var bytes: Int { entries.cost }

    /// - Parameter capacity: bytes of all sources together; 0 keeps none.
    init(capacity: Int) { entries = LRUCache(capacity: capacity) }

    /// The source that is kept under this name; nil when there is none or it is no longer fresh.
    mutating func source(_ name: [UInt8], at now: ContinuousClock.Instant) -> LoadedSource? {
        guard let entry = entries.value(for: name) else { return nil }
        guard now < entry.expiry else {
            entries.remove(name)
            return nil
        }
        return entry.source
    }

    /// Forgets the source of this name.
    mutating func remove(_ name: [UInt8]) { entries.remove(name) }

    /// Keeps a source in place of what had its name, unless it alone is too large.
    mutating func keep(_ source: LoadedSource, as name: [UInt8], until expiry: ContinuousClock.Instant) {
        entries.insert(Entry(source: source, expiry: expiry), for: name, cost: max(Self.leastCost, source.body.count))
    }
}
