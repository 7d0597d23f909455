import HalcyonLeases
import HalcyonModel
import Threads

/// Identifies a fetch that callers share: one that wants a source reloaded does not wait for one that uses the cache.
struct FetchKey: Hashable, Sendable {
    let key: String
    let use: SourceCacheUse
}

/// The fetch of one source for all who want it, in this process and in others.
struct CoalescedSourceFetch: DistributedExecution {
    private let request: SourceRequest
    private let use: SourceCacheUse
    private let fetcher: SourceFetcher
    private let meters: LoadMeters
    private let firstVersion: Int
    /// The latest that was found in the cache.
    private let found: Lock<SourceStores.Finding>

    init(
        request: SourceRequest, use: SourceCacheUse, fetcher: SourceFetcher, meters: LoadMeters,
        first: SourceStores.Finding
    ) {
        self.request = request
        self.use = use
        self.fetcher = fetcher
        self.meters = meters
        firstVersion = first.version ?? -1
        found = Lock(first)
    }

    var usesLeases: Bool { use != .none }
    var leaseKind: LeaseKind { .source }

    func lease(for key: FetchKey) -> LeaseName { LeaseName(product: key.key) }

    func seen(_ key: FetchKey) -> Seen {
        use == .reload ? .anything : found.withLock { $0.version.map { .version($0) } ?? .nothing }
    }

    /// A version that was fetched while this operation waited is used whether or not it is fresh.
    func stored(_ key: FetchKey, hasWaited: Bool, _ context: WorkContext) async throws -> CachedSource? {
        let (found, permit) = try await fetcher.find(request, context.urgency)
        self.found.withLock { $0 = found }
        guard var hit = try fetcher.hit(found, permit, newerThan: firstVersion)?.source else { return nil }
        try context.markStarted()
        hit.isShared = hasWaited
        if !hasWaited { hit.loadedFor = context.trace }
        return hit
    }

    func reaction(to outcome: LeaseOutcome, of key: FetchKey) throws -> LeaseReaction<CachedSource> {
        guard use != .reload else { return .askAgain }
        switch outcome {
        case .unshared: return .executeWithoutLease
        case .failed(let reason):
            guard let failure = Failure(shared: reason) else { return .askAgain }
            return .complete(try fetcher.stale(found.withLock { $0.entry }, after: failure))
        case .stored, .givenUp: return .askAgain
        }
    }

    /// A provider of the host program may crash the worker. The bytes of a response are not even looked at here, so it
    /// takes many crashes during a download to be no coincidence.
    func verdict(on key: FetchKey, deaths: Int, _ limits: DeathLimits) throws -> CachedSource? {
        let most = if case .custom = request.source { limits.deaths } else { limits.coincidences }
        // A reload tries again.
        if deaths >= most, use != .reload { throw Failure.knownPoison }
        return nil
    }

    func execute(_ keys: [FetchKey], _ execution: Execution) async throws -> [ExecutionResult<CachedSource>] {
        let known = found.withLock { $0.entry }
        let terms = KeepingTerms(
            fence: execution.leases?.first?.fence ?? 0, trace: execution.context.trace,
            isWanted: execution.isWantedElsewhere)
        return try await meters.measure(keys[0]) {
            do {
                var (source, isShared) = try await fetcher.fetch(request, known, use, terms, execution.context)
                source.loadedFor = execution.context.trace
                return [.completed(source, isShared ? .stored : .unshared)]
            } catch let failure as Failure {
                let outcome = failure.isShared ? LeaseOutcome.failed(failure.shared) : .givenUp
                do throws(Failure) {
                    var source = try fetcher.stale(known, after: failure)
                    source.loadedFor = execution.context.trace
                    return [.completed(source, outcome)]
                } catch {
                    return [.failed(error, outcome)]
                }
            }
        }
    }
}
