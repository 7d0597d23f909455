import Concurrency
import Formats
import HalcyonCoordination
import HalcyonModel
import Redis
import Telemetry

/// A shared HTTP cache of sources (RFC 9111). The bytes of a source are stored with its response and reused for other
/// sizes of the image. A stale source is revalidated without a download if it has not changed.
///
/// Concurrent fetches of a source are coalesced across the cluster (``DistributedSingleFlightGroup``). Waiting jobs
/// hold no permits.
public struct SourceCache: Sendable {
    let fetcher: SourceFetcher
    let singleFlight: DistributedSingleFlightGroup<FetchKey, CachedSource>
    let meters = LoadMeters()
    let revalidations = BackgroundRevalidator()

    /// Creates a cache. The call blocks if there is a disk cache. The caller closes the loader, the client and the
    /// leases.
    /// - Parameters:
    ///   - redis: The client that all workers share; nil for a standalone process.
    ///   - leases: The leases for coalescing across workers; nil for a standalone process.
    ///   - permits: Limits the number of sources that are fetched or in memory.
    ///   - bytesPerPermit: The bytes that one permit covers. A larger source needs several permits.
    ///   - largest: The size limit of a source, used as the expected size of the first ones.
    /// - Throws: ``DiskError``.
    public init(
        _ loader: SourceLoader, _ redis: RedisClient?, _ leases: Leases? = nil,
        permits: PrioritySemaphore = PrioritySemaphore(256),
        bytesPerPermit: Int = .max, largest: Int = 1 << 20, options: SourceCacheOptions = SourceCacheOptions(),
        limits: OriginLimits = OriginLimits(), log: Log, metrics: Metrics
    ) throws {
        fetcher = SourceFetcher(
            loader: loader,
            rateLimiter: OriginRateLimiter(
                redis, limits, shares: permits.shares,
                errors: ToleratedErrors(of: "origins", log: log, metrics: metrics)),
            stores: try SourceCacheStack(options, redis, log, metrics),
            permits: FetchPermits(permits, bytesPerPermit: bytesPerPermit, first: largest), options: options,
            metrics: SourceCacheMetrics(metrics), origins: OriginMetrics(metrics))
        singleFlight = DistributedSingleFlightGroup(.source, leases)
    }

    /// Returns a source, from the cache if a stored response may be used, otherwise from its origin.
    ///
    /// - Parameter context: The priority of the caller. Its `start` is called once, when the source is available or its
    ///   origin is about to be contacted.
    /// - Throws: ``JobError``, possibly a cached one, and for ``SourceCacheUse/onlyKept`` `not_found`, or `internal` if
    ///   Redis is unavailable; `CancellationError` when the task is cancelled, which ends the transfer unless others
    ///   wait for it, and when the source is no longer wanted at its start.
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
        fetcher.permits.giveUp(permit, context.urgency)
        return try await share(request, found, use, context)
    }

    /// Fetches a source from its origin, sharing one fetch among all callers.
    private func share(
        _ request: SourceRequest, _ found: SourceCacheStack.SourceLookup, _ use: SourceCacheUse, _ context: WorkContext
    ) async throws -> CachedSource {
        let key = FetchKey(key: request.tierKey, use: use)
        let work = CoalescedSourceFetch(request: request, use: use, cache: self, first: found)
        guard let result = try await singleFlight.run([key], context, work)[key] else { throw CancellationError() }
        var source = result.value
        if !result.isOwn { source.isShared = true }
        return source
    }

    /// Revalidates a stale source in the background while it is still served (RFC 5861, section 3).
    private func revalidate(_ request: SourceRequest, _ found: SourceCacheStack.SourceLookup) async {
        await revalidations.run(request.tierKey) {
            // The stale response is served meanwhile, and errors are cached. No caller waits for this fetch.
            _ = try? await share(request, found, .standard, WorkContext(urgency: WorkPriority(level: 2)))
        }
    }

    /// The progress of a source's fetch; nil unless this process is fetching it.
    public func progress(of request: SourceRequest, _ use: SourceCacheUse = .standard) -> LoadProgress? {
        meters.progress(of: FetchKey(key: request.tierKey, use: use))
    }

    /// Removes a purged source from the disk cache of this process. Fetches that began before the purge do not store it
    /// there again. The purge itself removes it from Redis.
    /// - Parameters:
    ///   - time: The time of the purge by the clock of Redis, in microseconds since 1970.
    ///   - keepsNewer: True to keep a source whose fetch began after the purge.
    public func purgeLocal(_ request: SourceRequest, at time: Int64, keepsNewer: Bool) async {
        for key in [request.tierKey, request.copyKey] {
            await fetcher.stores.purgeLocal(key, at: Int(time), keepsNewer: keepsNewer)
        }
    }

    /// Cancels background work and closes the stores.
    public func close() async {
        await revalidations.close()
        await fetcher.stores.close()
    }
}

/// The use of the source cache that a job allows.
public enum SourceCacheUse: Hashable, Sendable {
    /// Look the source up first, and store it if it is fetched.
    case standard
    /// Fetch the source and replace the stored response.
    case reload
    /// Look the source up and never contact an origin. Sources that are not cacheable are loaded as usual.
    case onlyKept
    /// Neither look the source up nor store it.
    case none
}

/// A source and information about how it was obtained.
public struct CachedSource: Sendable {
    /// The bytes and the origin's response.
    public let source: LoadedSource
    /// True if the bytes were cached: nothing was downloaded except perhaps a 304 response.
    public let isFromCache: Bool
    /// The fencing token of the lease under which it was fetched, if known. After a purge, data with an older token
    /// must not be stored.
    public let fence: Int?
    /// The memory permit for the bytes. All users of the bytes share it. It is released with the last reference.
    public var permit: SemaphorePermit?
    /// True if it was fetched for another job, in this or another process.
    public internal(set) var isShared = false
    /// The span of the fetch, if it was recorded.
    public internal(set) var loadedFor: TraceContext?
    /// The original, if the bytes are an archive copy of it.
    public internal(set) var original: ArchivedOriginal?

    init(
        source: LoadedSource, isFromCache: Bool, fence: Int?, permit: SemaphorePermit?,
        original: ArchivedOriginal? = nil
    ) {
        self.source = source
        self.isFromCache = isFromCache
        self.fence = fence
        self.permit = permit
        self.original = original
    }
}

/// Options of the source cache: stores, size limits and lifetimes.
public struct SourceCacheOptions: Sendable {
    /// The freshness policy where responses do not specify one.
    public var freshness = FreshnessPolicy()
    /// The lifetimes of cached errors.
    public var failures = FailureLifetimes()
    /// The size limit of a source in Redis, in bytes; 0 to cache none there.
    public var redisBytes = 1 << 20
    /// The size limit of a source that is passed through Redis to other workers that wait for it, in bytes. It stays
    /// there for 30 seconds. With 0, each waiting worker fetches a source that exceeds the cache limit itself.
    public var handOverBytes = 32 << 20
    /// The size limit of an archive copy in Redis, in bytes; 0 to store none there.
    public var copyBytes = 8 << 20
    /// The retention of archive copies in Redis, in seconds.
    public var copyRetention = 7 * 86_400.0
    /// The quota of all sources in Redis.
    public var redisBudget = SourceBudget.unlimited
    /// The retention in Redis of responses that can be revalidated, fresh or not, in seconds.
    public var redisRetention = 3600.0
    /// The folder of the disk cache; nil for none.
    public var folder: String?
    /// The size limit of the disk cache, in bytes.
    public var folderBytes = 1 << 30
    /// The retention in the disk cache of responses that can be revalidated, fresh or not, in seconds. The default is
    /// long, because the disk cache is limited by its size.
    public var folderRetention = 30 * 86_400.0

    /// Creates options with default values.
    public init() {}
}

/// Lifetimes of cached errors in seconds, by class; 0 to not cache a class.
public struct FailureLifetimes: Hashable, Sendable {
    /// Missing sources: 404 and 410.
    public var missing = 60.0
    /// Refused or unusable sources: 401, 403, 451, other 4xx statuses, too large, too many redirects.
    public var refused = 60.0
    /// Failing origins: 5xx statuses, 408, 425, 429, broken transfers, malformed responses.
    public var failing = 1.0
    /// Unreachable origins: DNS, connection, TLS and timeout errors.
    public var unreachable = 1.0

    /// Creates lifetimes with default values.
    public init() {}

    /// Returns the lifetime of an error in seconds.
    public func seconds(for failure: JobError) -> Double {
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

/// Counters of the source cache, by the origin of a source.
struct SourceCacheMetrics: Sendable {
    /// Fresh cache hits.
    let fresh: Counter
    /// Stale cache hits, where they were allowed.
    let stale: Counter
    /// Cache hits after revalidation by the origin.
    let confirmed: Counter
    /// Downloads from origins.
    let loaded: Counter
    /// Cached errors.
    let failed: Counter
    /// Bytes downloaded from origins.
    let fetchedBytes: Counter

    init(_ metrics: Metrics) {
        func counter(_ result: String) -> Counter {
            metrics.counter(
                "halcyon_sources_total", help: "Requested sources, by where they came from.",
                labels: ["from": result])
        }
        fresh = counter("tier")
        stale = counter("tier-stale")
        confirmed = counter("tier-confirmed")
        loaded = counter("origin")
        failed = counter("tier-failure")
        fetchedBytes = metrics.counter(
            "halcyon_fetched_bytes_total", help: "Bytes of sources downloaded from origins.")
    }
}

/// Background revalidations of stale sources, at most one at a time per source.
actor BackgroundRevalidator {
    private var tasks: [String: Task<Void, Never>] = [:]
    private var isClosed = false

    /// Starts the work in the background, unless work with this key is in flight.
    func run(_ key: String, _ work: @escaping @Sendable () async -> Void) {
        guard !isClosed, tasks[key] == nil else { return }
        tasks[key] = Task {
            await work()
            tasks[key] = nil
        }
    }

    /// Cancels all work and waits for it to end.
    func close() async {
        isClosed = true
        for task in tasks.values { task.cancel() }
        for task in tasks.values { await task.value }
    }
}

/// Counters of cache hits and misses of a store. Stale entries count as hits.
struct CacheLookupMetrics: Sendable {
    private let hits, misses: Counter

    /// Creates the counters.
    /// - Parameter store: The label of the store: `folder` or `redis`.
    init(_ metrics: Metrics, _ store: String) {
        func counter(_ result: String) -> Counter {
            metrics.counter(
                "halcyon_source_lookups_total",
                help: "Lookups in each store of the source cache, by result.",
                labels: ["store": store, "result": result])
        }
        (hits, misses) = (counter("hit"), counter("miss"))
    }

    func count(isHit: Bool) { (isHit ? hits : misses).add() }
}
