import CivilTime
import HalcyonLeases
import HalcyonModel
import Redis
import Telemetry
import Threads

/// Sources from where they lie nearest: what was loaded once is kept with what its origin said of it, and used again as a
/// shared cache may (RFC 9111), so that another size of an image is no second download, and an unchanged one is none either.
///
/// However many ask, a source is loaded once at a time: in this process, and by leases in the whole cluster. Who waits holds none of
/// the ``SourceTier/places``.
public struct SourceTier: Sendable {
    /// A source that is wanted, in a way that allows some answers and not others.
    private struct Wish: Hashable, Sendable {
        let key: String
        let use: SourceCacheUse
    }

    private let loading: SourceLoading
    private let stores: SourceStores
    private let leases: Leases?
    private let flights = Flights<Wish, TieredSource>()
    private let meters = Lock<[Wish: LoadMeter]>([:])
    private let revalidations = Revalidations()

    /// It blocks where sources are kept in a folder. The loader, the client and the leases stay their maker's, who closes them.
    /// - Parameters:
    ///   - redis: what all workers share; nil for a process that is alone.
    ///   - leases: by which workers load a source once; nil for a process that is alone.
    ///   - places: how many sources may be on their way, or in memory waiting to be used.
    ///   - bytesPerPlace: a source that is larger takes more of them once it is there.
    ///   - largest: bytes of the largest source that is loaded: until some are there, all are taken to be as large.
    /// - Throws: what is wrong with the folder.
    public init(
        _ loader: SourceLoader, _ redis: RedisClient?, _ leases: Leases? = nil, places: Slots = Slots(256),
        bytesPerPlace: Int = .max, largest: Int = 1 << 20, options: SourceTierOptions = SourceTierOptions(),
        limits: OriginLimits = OriginLimits(), log: Log, metrics: Metrics
    ) throws {
        self.leases = leases
        stores = try SourceStores(options, redis, log, metrics)
        loading = SourceLoading(
            loader: loader, gate: OriginGate(redis, limits, shares: places.shares), stores: stores,
            places: SourcePlaces(places, bytesPerPlace: bytesPerPlace, first: largest), options: options,
            metrics: SourceTierMetrics(metrics), origins: OriginMetrics(metrics))
    }

    /// What is asked for, from the tier where that may be used, else from its origin.
    ///
    /// - Parameters:
    ///   - urgency: of whoever waits.
    ///   - trace: the place of what it is loaded for, for others who get it then.
    ///   - onBegin: called once, when the source is there or its origin is about to be asked; it says whether the source is still wanted.
    /// - Throws: ``Failure``, also one that is remembered, and `not_found` for what is not kept where nothing else will do;
    ///   `CancellationError` when the task is cancelled, which ends the transfer unless others wait for it, and when `onBegin` says no.
    public func load(
        _ request: SourceRequest, _ use: SourceCacheUse = .standard, urgency: Urgency = Urgency(level: 0),
        trace: TraceContext? = nil, onBegin: @escaping @Sendable () -> Bool = { true }
    ) async throws -> TieredSource {
        let found = try await find(request, use, urgency, trace, onBegin)
        if let place = found.place { loading.places.settle(place, bytes: found.source.body.count) }
        return found
    }

    private func find(
        _ request: SourceRequest, _ use: SourceCacheUse, _ urgency: Urgency, _ trace: TraceContext?,
        _ onBegin: @escaping @Sendable () -> Bool
    ) async throws -> TieredSource {
        guard request.source.isWorthKeeping else {
            let source = try await loading.near(request, urgency)
            guard onBegin() else { throw CancellationError() }
            return source
        }
        if use == .standard || use == .onlyKept {
            let (found, place) = try await loading.find(request, urgency)
            if use == .onlyKept { return try loading.kept(found, place) }
            if let (hit, isOld) = try loading.hit(found, place) {
                guard onBegin() else { throw CancellationError() }
                if isOld { await revalidations.run(request.tierKey) { _ = try? await share(request, found) } }
                return hit
            }
            place.release()
            return try await share(request, found, urgency: urgency, trace: trace, onBegin: onBegin)
        }
        return try await share(request, .nothing, use, urgency: urgency, trace: trace, onBegin: onBegin)
    }

    /// The progress of a source's load; nil unless this process is loading it.
    public func progress(of request: SourceRequest, _ use: SourceCacheUse = .standard) -> LoadProgress? {
        meters.withLock { $0[Wish(key: request.tierKey, use: use)] }?.progress
    }

    /// Forgets what this process keeps of a source by itself, if it was kept by then (seconds since 1970). What all workers share is the
    /// purge's to remove.
    public func forgetHere(_ request: SourceRequest, keptBy moment: Double) async {
        await stores.forgetHere(request.tierKey, keptBy: moment)
    }

    /// Ends what goes on in the background, and its files.
    public func close() async {
        await revalidations.close()
        await stores.close()
    }

    /// From the origin, once for all who want it.
    private func share(
        _ request: SourceRequest, _ found: SourceStores.Finding, _ use: SourceCacheUse = .standard,
        urgency: Urgency = Urgency(level: 2), trace: TraceContext? = nil,
        onBegin: @escaping @Sendable () -> Bool = { true }
    ) async throws -> TieredSource {
        let wish = Wish(key: request.tierKey, use: use)
        let arrival = try await flights.board([wish], urgency: urgency, onBegin: { _ in onBegin() }) { flight, _ in
            let work = SourceWork(
                request: request, use: use, urgency: flight.urgency, trace: trace, loading: loading,
                onBegin: flight.begin,
                goesOn: flight.goesOn)
            let meter = LoadMeter()
            meters.withLock { $0[wish] = meter }
            // After all waiters have left, the next load may start before this one has ended.
            defer { meters.withLock { if $0[wish] === meter { $0[wish] = nil } } }
            var source = try await LoadMeter.$current.withValue(meter) { try await work.run(found, leases) }
            if !source.isShared { source.loadedFor = trace }
            flight.land(wish, source)
        }[wish]
        guard let arrival else { throw CancellationError() }
        if arrival.isOwn { return arrival.value }
        leases?.joined(.source, 1)
        var source = arrival.value
        source.isShared = true
        return source
    }
}

/// What a job lets the source tier do.
public enum SourceCacheUse: Hashable, Sendable {
    /// Look there first, and keep what was loaded.
    case standard
    /// Load it, and keep that in place of what is there.
    case reload
    /// Look there and nowhere else: no origin is asked. Sources that are as near as they can be are loaded as ever.
    case onlyKept
    /// Neither look nor keep.
    case none
}

/// A source, and where it came from.
public struct TieredSource: Sendable {
    /// The bytes, and what their origin said.
    public let source: LoadedSource
    /// Whether its bytes were there: nothing was downloaded, or no more than the word that they still hold.
    public let isFromTier: Bool
    /// The fence of the lease under which it was loaded, where that is known: a purge makes what is older unfit to be stored.
    public let fence: Int?
    /// What its bytes take of the worker's memory; all who have them share it.
    public let place: Place?
    /// Whether it was loaded for somebody else, of this process or of another, who had asked before.
    public internal(set) var isShared = false
    /// The place in a trace of what it was loaded for, where that is recorded.
    public internal(set) var loadedFor: TraceContext?
}
