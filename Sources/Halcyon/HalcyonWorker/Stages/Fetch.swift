import HalcyonModel
import HalcyonSources
import Threads

/// Gets the bytes of a source, and of the pictures that are laid over it.
struct Fetch: Sendable {
    let sources: SourceTier
    /// For watermarks and overlays, which many jobs have in common.
    let shared: SharedSources
    /// How many sources may be on their way, or in memory waiting to be rendered.
    let places: Slots

    /// Loads the job's source, and beside it what these of its variants need.
    ///
    /// The life of a result follows from the job's own source alone: a watermark that changes is seen in results made after
    /// it is no longer fresh, and those made before live on as long as they were given.
    /// - Parameter place: the place that is held, given back while an origin is waited for.
    /// - Throws: ``Failure`` that names the asset, where it is about one.
    func fetch(_ places: [Int], of work: Work, holding place: Place) async throws -> Fetched {
        let assets = Set(places.flatMap { work.job.variants[$0].assets })
        guard !assets.isEmpty else {
            return Fetched(
                try await sources.load(work.job.source, work.job.cache.ofSources, holding: place), assets: [:])
        }
        // Whichever fails first ends the other.
        return try await withThrowingTaskGroup(of: (TieredSource?, [Source: [UInt8]]).self) { group in
            group.addTask { (try await sources.load(work.job.source, work.job.cache.ofSources, holding: place), [:]) }
            group.addTask { (nil, try await shared.load(all: assets)) }
            var (source, bodies): (TieredSource?, [Source: [UInt8]]) = (nil, [:])
            for try await (own, others) in group {
                source = own ?? source
                bodies.merge(others) { $1 }
            }
            guard let source else { throw CancellationError() }
            return Fetched(source, assets: bodies)
        }
    }
}

extension CacheUse {
    /// What of it is about the source tier. A job that is content with what is there never comes so far.
    fileprivate var ofSources: SourceCacheUse {
        guard source else { return .none }
        return reload ? .reload : .standard
    }
}

/// What a job is made from.
struct Fetched: Sendable {
    /// The job's own source.
    let source: LoadedSource
    /// Where it was.
    let origin: ResultOrigin
    /// The bytes of the pictures beside it.
    let assets: [Source: [UInt8]]

    init(_ found: TieredSource, assets: [Source: [UInt8]]) {
        source = found.source
        origin = found.isFromTier ? .sourceCache : .network
        self.assets = assets
    }
}
