import CivilTime
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
        if let deadline = work.deadline, Timestamp.now.seconds >= deadline {
            throw Failure(.expired, "the deadline passed before the work began")
        }
        return try await sources.load(work.job.source)
    }
}
