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
    /// - Parameter places: where in the job they stand.
    /// - Throws: ``Failure`` that names the variant, where it is about one; `expired` when the deadline passes in the
    ///   middle.
    func render(_ source: Fetched, _ places: [Int], of work: Work) async throws -> Rendering {
        do {
            return try await service.render(
                source.source.body, places.map { work.job.variants[$0] }, assets: source.assets,
                until: work.deadlineInstant)
        } catch is RenderDeadlinePassed {
            throw work.expired
        } catch let failure as Failure {
            throw failure.naming(places, of: work.job.variants.count)
        }
    }
}
