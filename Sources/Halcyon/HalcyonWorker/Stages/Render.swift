import HalcyonImaging
import HalcyonModel
import Threads

/// Makes the output.
struct Render: Sendable {
    let renderer: Renderer
    let pool: ThreadPool
    /// How many renderings may be under way or queued: a few more than there are threads, so that none is ever idle.
    let places: Slots

    /// - Throws: ``Failure``.
    func render(_ source: [UInt8], _ work: Work) async throws -> RenderedImage {
        try await renderer.render(source, work.job.variant, on: pool)
    }
}
