import HalcyonModel
import HalcyonSources
import Threads

/// Gets the bytes of a source, and of the pictures that are laid over it.
struct Fetch: Sendable {
    let sources: SourceLoader
    /// For watermarks and overlays, which many jobs have in common.
    let shared: SharedSources
    /// How many sources may be on their way, or in memory waiting to be rendered.
    let places: Slots

    /// Loads the job's source, and beside it what these of its variants need.
    ///
    /// The life of a result follows from the job's own source alone: a watermark that changes is seen in results made after
    /// it is no longer fresh, and those made before live on as long as they were given.
    /// - Throws: ``Failure`` that names the asset, where it is about one.
    func fetch(_ places: [Int], of work: Work) async throws -> Fetched {
        let assets = Set(places.flatMap { work.job.variants[$0].assets })
        guard !assets.isEmpty else { return Fetched(source: try await sources.load(work.job.source), assets: [:]) }
        // Whatever fails first ends the rest.
        return try await withThrowingTaskGroup(of: (Source?, LoadedSource).self) { group in
            group.addTask { (nil, try await sources.load(work.job.source)) }
            for asset in assets { group.addTask { (asset, try await load(asset)) } }
            var own: LoadedSource?
            var bodies: [Source: [UInt8]] = [:]
            for try await (asset, loaded) in group {
                if let asset { bodies[asset] = loaded.body } else { own = loaded }
            }
            guard let own else { throw CancellationError() }
            return Fetched(source: own, assets: bodies)
        }
    }

    private func load(_ asset: Source) async throws -> LoadedSource {
        do {
            return try await shared.load(asset)
        } catch let failure as Failure {
            throw Failure(failure.code, "the asset \(asset.text): \(failure.message)", isRetryable: failure.isRetryable)
        }
    }
}

/// What a job is made from.
struct Fetched: Sendable {
    /// The job's own source.
    let source: LoadedSource
    /// The bytes of the pictures beside it.
    let assets: [Source: [UInt8]]
}
