import CivilTime
import HalcyonLeases
import HalcyonModel
import Redis
import Telemetry
import Threads

/// A shared HTTP cache of sources (RFC 9111): the bytes of a source are kept with its response, and used again for
/// another size of the image; a stale source that has not changed is revalidated without a download.
///
/// However many jobs want it, a source is fetched once at a time in the cluster (``DistributedSingleFlight``). Waiting
/// jobs hold no permit.
public struct SourceCache: Sendable {
    private let fetcher: SourceFetcher
    private let flight: DistributedSingleFlight<FetchKey, CachedSource>
    private let meters = LoadMeters()
    private let revalidations = Revalidations()

    /// It blocks where sources are kept in a folder. The caller closes the loader, the client and the leases.
    /// - Parameters:
    ///   - redis: shared by all workers; nil for a process that is alone.
    ///   - leases: nil for a process that is alone.
    ///   - permits: how many sources may be fetched or in memory at once.
    ///   - bytesPerPermit: a larger source takes several permits.
    ///   - largest: bytes of the largest source that is fetched: the size expected of the first ones.
    /// - Throws: ``DiskError``.
    public init(
        _ loader: SourceLoader, _ redis: RedisClient?, _ leases: Leases? = nil, permits: Slots = Slots(256),
        bytesPerPermit: Int = .max, largest: Int = 1 << 20, options: SourceTierOptions = SourceTierOptions(),
        limits: OriginLimits = OriginLimits(), log: Log, metrics: Metrics
    ) throws {
        fetcher = SourceFetcher(
            loader: loader,
            gate: OriginGate(
                redis, limits, shares: permits.shares,
                errors: ToleratedErrors(of: "origins", log: log, metrics: metrics)),
            stores: try SourceStores(options, redis, log, metrics),
            permits: FetchPermits(permits, bytesPerPermit: bytesPerPermit, first: largest), options: options,
            metrics: SourceTierMetrics(metrics), origins: OriginMetrics(metrics))
        flight = DistributedSingleFlight(.source, leases)
    }

    /// Gets a source, from the cache where a stored response may be used, else from its origin.
    ///
    /// - Parameter context: the priority of the caller; its `start` is called once, when the source is there or its
    ///   origin is about to be asked.
    /// - Throws: ``Failure``, also a cached one, and `not_found` for ``SourceCacheUse/onlyKept``; `CancellationError`
    ///   when the task is cancelled, which ends the transfer unless others wait for it, and when the source is not
    ///   wanted at its start.
    public func fetch(
        _ request: SourceRequest, _ use: SourceCacheUse = .standard, _ context: WorkContext = WorkContext()
    ) async throws -> CachedSource {
        let found = try await find(request, use, context)
        if let permit = found.permit { fetcher.permits.settle(permit, bytes: found.source.body.count) }
        return found
    }

    private func find(
        _ request: SourceRequest, _ use: SourceCacheUse, _ context: WorkContext
    ) async throws -> CachedSource {
        guard request.source.isWorthKeeping else {
            let source = try await fetcher.fetchUncached(request, context.urgency)
            try context.markStarted()
            return source
        }
        guard use == .standard || use == .onlyKept else { return try await share(request, .nothing, use, context) }
        let (found, permit) = try await fetcher.find(request, context.urgency)
        if use == .onlyKept { return try fetcher.kept(found, permit) }
        if let (hit, isOld) = try fetcher.hit(found, permit) {
            try context.markStarted()
            if isOld { await revalidate(request, found) }
            return hit
        }
        permit.release()
        return try await share(request, found, use, context)
    }

    /// Fetches a source from its origin, once for all who want it.
    private func share(
        _ request: SourceRequest, _ found: SourceStores.Finding, _ use: SourceCacheUse, _ context: WorkContext
    ) async throws -> CachedSource {
        let key = FetchKey(key: request.tierKey, use: use)
        let work = CoalescedSourceFetch(request: request, use: use, fetcher: fetcher, meters: meters, first: found)
        guard let result = try await flight.run([key], context, work)[key] else { throw CancellationError() }
        var source = result.value
        if !result.isOwn { source.isShared = true }
        return source
    }

    /// Fetches a stale source in the background while it is still used (RFC 5861, section 3).
    private func revalidate(_ request: SourceRequest, _ found: SourceStores.Finding) async {
        await revalidations.run(request.tierKey) {
            // The stale one is served meanwhile, and a failure is kept: nobody waits for this one.
            _ = try? await share(request, found, .standard, WorkContext(urgency: Urgency(level: 2)))
        }
    }

    /// The progress of a source's load; nil unless this process is loading it.
    public func progress(of request: SourceRequest, _ use: SourceCacheUse = .standard) -> LoadProgress? {
        meters.progress(of: FetchKey(key: request.tierKey, use: use))
    }

    /// Removes a source from what this process keeps for itself, if it was kept by then (seconds since 1970). The purge
    /// removes it from Redis.
    public func evictLocal(_ request: SourceRequest, storedBefore moment: Double) async {
        await fetcher.stores.forgetHere(request.tierKey, keptBy: moment)
    }

    /// Ends background work, and closes its files.
    public func close() async {
        await revalidations.close()
        await fetcher.stores.close()
    }
}

/// The use that a job allows of the source cache.
public enum SourceCacheUse: Hashable, Sendable {
    /// Look there first, and store what is fetched.
    case standard
    /// Fetch it, and replace what is stored.
    case reload
    /// Look there and nowhere else: no origin is asked. Sources that are not cached are fetched as ever.
    case onlyKept
    /// Neither look nor store.
    case none
}

/// A source, and where it came from.
public struct CachedSource: Sendable {
    /// The bytes, and the origin's response.
    public let source: LoadedSource
    /// Whether the bytes were in the cache: nothing was downloaded, or no more than a confirmation.
    public let isFromCache: Bool
    /// The fencing token of the lease under which it was fetched, if known: a purge makes what is older unfit to be
    /// stored.
    public let fence: Int?
    /// The share of the worker's memory that its bytes take; all who have them share it.
    public let permit: Place?
    /// Whether it was fetched for another job, of this process or of another.
    public internal(set) var isShared = false
    /// The span of the fetch, if it is recorded.
    public internal(set) var loadedFor: TraceContext?
}
