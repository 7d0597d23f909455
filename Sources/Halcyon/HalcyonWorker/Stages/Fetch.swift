import HalcyonModel
import HalcyonSources
import Threads

/// Gets the bytes of a source.
struct Fetch: Sendable {
    let sources: SourceLoader
    /// How many sources may be on their way, or in memory waiting to be rendered.
    let places: Slots

    /// - Throws: ``Failure``.
    func fetch(_ work: Work) async throws -> LoadedSource {
        try await sources.load(work.job.source)
    }
}
