import Formats
import HalcyonCoordination
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

/// What the source tier keeps, where, and for how long.
public struct SourceTierOptions: Sendable {
    /// What responses leave open about their freshness.
    public var freshness = FreshnessPolicy()
    /// How long failures are remembered.
    public var failures = FailureLifetimes()
    /// Bytes of the largest source that is kept in Redis; 0 for none.
    public var redisBytes = 1 << 20
    /// Bytes of the largest source that is handed to other workers through Redis when they wait for it; it stays there for half a
    /// minute. 0 for none: then each worker that waits for a larger source than is kept loads it itself.
    public var handOverBytes = 32 << 20
    /// Bytes of all sources in Redis, those of all tenants, with what is known of them; nil for no limit of Halcyon's own.
    public var redisBudget: Int?
    /// For how long Redis keeps what its origin can be asked about, fresh or not, in seconds.
    public var redisRetention = 3600.0
    /// A folder of the local disk to keep sources in; nil for none.
    public var folder: String?
    /// Bytes of all sources there.
    public var folderBytes = 1 << 30
    /// For how long the folder keeps what its origin can be asked about, fresh or not, in seconds. There the bytes are what
    /// is scarce.
    public var folderRetention = 30 * 86_400.0

    /// The defaults.
    public init() {}
}

/// For how many seconds a failure to load a source is taken for the answer, by its class; 0 for not at all.
public struct FailureLifetimes: Hashable, Sendable {
    /// There is none: 404 and 410.
    public var missing = 60.0
    /// It is not given, or cannot be taken: 401, 403, 451, other statuses of the 400s, too large, too many redirects.
    public var refused = 60.0
    /// The origin is in trouble: statuses of the 500s, 408, 425, 429, broken answers.
    public var failing = 1.0
    /// There is no way to it: name, connection, TLS, time.
    public var unreachable = 1.0

    /// The defaults.
    public init() {}

    /// How long this one holds.
    public func seconds(for failure: Failure) -> Double {
        switch failure.code {
        case .notFound, .gone: missing
        case .forbidden, .tooLarge, .tooManyRedirects: refused
        case .httpError: failure.isRetryable ? failing : refused
        case .dnsError, .connectError, .tlsError, .timeout: unreachable
        case .invalidJob, .unsupportedSource, .blockedAddress, .tooManyPixels, .unsupportedFormat, .corruptImage,
            .expired, .providerError, .poison, .internal, .originUnavailable:
            0
        }
    }
}

/// What the source tier counts, by how a source was had.
struct SourceTierMetrics: Sendable {
    /// From the tier, fresh.
    let fresh: Counter
    /// From the tier, stale, where that was allowed.
    let stale: Counter
    /// From the tier, after its origin had confirmed it.
    let confirmed: Counter
    /// From its origin.
    let loaded: Counter
    /// Not at all: a failure that was remembered.
    let failed: Counter
    /// Bytes that came from origins.
    let fetchedBytes: Counter

    init(_ metrics: Metrics) {
        func counter(_ result: String) -> Counter {
            metrics.counter(
                "halcyon_sources_total", help: "Sources that were asked for, by how they were had.",
                labels: ["from": result])
        }
        fresh = counter("tier")
        stale = counter("tier-stale")
        confirmed = counter("tier-confirmed")
        loaded = counter("origin")
        failed = counter("tier-failure")
        fetchedBytes = metrics.counter(
            "halcyon_fetched_bytes_total", help: "Bytes of sources that came from their origins.")
    }
}

/// Sources that are loaded anew while their old bytes are in use: each once at a time.
actor Revalidations {
    private var tasks: [String: Task<Void, Never>] = [:]
    private var isClosed = false

    /// Begins the work in the background, unless it is under way.
    func run(_ key: String, _ work: @escaping @Sendable () async -> Void) {
        guard !isClosed, tasks[key] == nil else { return }
        tasks[key] = Task {
            await work()
            tasks[key] = nil
        }
    }

    /// Cancels what is under way, and waits for it.
    func close() async {
        isClosed = true
        for task in tasks.values { task.cancel() }
        for task in tasks.values { await task.value }
    }
}

/// Counts how often a store of sources had what was looked for, fresh or not.
struct StoreLookups: Sendable {
    private let hits, misses: Counter

    /// - Parameter store: what it is called in the metrics: `folder` or `redis`.
    init(_ metrics: Metrics, _ store: String) {
        func counter(_ result: String) -> Counter {
            metrics.counter(
                "halcyon_source_lookups_total",
                help: "Sources that were looked for in each store of the source tier, by whether they were there.",
                labels: ["store": store, "result": result])
        }
        (hits, misses) = (counter("hit"), counter("miss"))
    }

    func count(isHit: Bool) { (isHit ? hits : misses).add() }
}
