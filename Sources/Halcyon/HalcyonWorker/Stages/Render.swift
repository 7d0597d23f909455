import HalcyonImaging
import HalcyonModel
import HalcyonRendering
import Threads

/// Makes the output.
struct Render: Sendable {
    let service: RenderService
    /// How many renderings may be under way or queued: a few more than there are threads, so that none is ever idle.
    let places: Slots

    /// - Throws: ``Failure``, `expired` when the deadline passes in the middle.
    func render(_ source: [UInt8], _ work: Work) async throws -> RenderedImage {
        do {
            return try await service.render(source, [work.job.variant], until: work.deadlineInstant)[0]
        } catch is RenderDeadlinePassed {
            throw work.expired
        }
    }
}
