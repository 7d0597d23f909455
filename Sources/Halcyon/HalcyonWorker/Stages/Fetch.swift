import HalcyonModel
import HalcyonSources
import Telemetry
import Threads

/// Gets the bytes of a source, and of the pictures that are laid over it.
struct Fetch: Sendable {
    let sources: SourceTier
    /// For watermarks and overlays, which many jobs have in common.
    let shared: SharedSources

    /// The progress of loading a job's source; nil unless this worker is loading it.
    func progress(of work: Work) -> LoadProgress? {
        sources.progress(of: work.job.request, work.job.cache.ofSources)
    }

    /// Loads what is laid over these of the job's variants, and the job's source.
    ///
    /// The life of a result follows from the job's own source alone: a watermark that changes is seen in results made after
    /// it is no longer fresh, and those made before live on as long as they were given.
    /// - Parameter onBegin: called once, when the source is there or its origin is about to be asked; it says whether it still is wanted.
    /// - Throws: ``Failure`` that names the asset, where it is about one.
    func fetch(
        _ places: [Int], of work: Work, urgency: Urgency, onBegin: @escaping @Sendable () -> Bool
    ) async throws -> Fetched {
        let (request, use) = (work.job.request, work.job.cache.ofSources)
        // These first: who waits for them holds no place, which another may need to load one of them.
        let assets = try await shared.load(
            all: Set(places.flatMap { work.job.variants[$0].assets }), of: request.tenant, onlyKept: use == .onlyKept)
        let found = try await sources.load(
            request, use, urgency: urgency, trace: work.trace?.context, onBegin: onBegin)
        return Fetched(found, assets: assets)
    }
}

extension CacheUse {
    /// What of it is about the source tier.
    fileprivate var ofSources: SourceCacheUse {
        guard source else { return .none }
        if onlyIfCached { return .onlyKept }
        return reload ? .reload : .standard
    }
}

/// What a job is made from.
struct Fetched: Sendable {
    /// The job's own source.
    let source: LoadedSource
    /// Where it was.
    let origin: ResultOrigin
    /// The fence of the lease it was loaded under, where there was one.
    let fence: Int?
    /// What its bytes take of the worker's memory, to be given back once they are being rendered.
    let place: Place?
    /// Whether it was loaded for another job that had asked before, here or elsewhere, and the place of that one in a trace, where it has one.
    let isShared: Bool
    let loadedFor: TraceContext?
    /// The bytes of the pictures beside it.
    let assets: [Source: [UInt8]]

    init(_ found: TieredSource, assets: [Source: [UInt8]]) {
        source = found.source
        origin = found.isFromTier ? .sourceCache : .network
        fence = found.fence
        place = found.place
        isShared = found.isShared
        loadedFor = found.loadedFor
        self.assets = assets
    }
}
