import HalcyonImaging
import HalcyonModel
import HalcyonRendering
import Threads

/// Makes the outputs.
struct Render: Sendable {
    let service: RenderService
    /// How many renderings may be under way or queued: a few more than there are threads, so that none is ever idle.
    let places: Slots

    /// Makes some of a job's variants from one decoding.
    /// - Parameters:
    ///   - places: where in the job they stand.
    ///   - isolation: where that may be done.
    /// - Throws: ``Failure``, of one of these variants where it is about one; `CancellationError` when the task is cancelled.
    func render(
        _ source: Fetched, _ places: [Int], of work: Work, _ isolation: RenderService.Isolation
    ) async throws -> Rendering {
        try await service.render(
            source.source.body, places.map { work.job.variants[$0] }, assets: source.assets, isolation: isolation)
    }
}
