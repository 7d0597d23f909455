import HalcyonModel
import HalcyonSources
import Telemetry
import Threads

/// Uploads results to where jobs want them, by HTTP, before anybody is told that they are ready. A job that is done
/// again puts again: the same bytes at the same place.
struct UploadStage: Sendable {
    let loader: SourceLoader
    /// How many are on their way at once.
    let permits: Slots
    /// Bytes that were taken.
    let bytes: Counter

    init(_ loader: SourceLoader, permits: Slots, metrics: Metrics) {
        self.loader = loader
        self.permits = permits
        bytes = metrics.counter(
            "halcyon_put_bytes_total", help: "Bytes of images that were taken where jobs had them put by HTTP.")
    }

    /// What is to be told of a job: where it wants its result put, that is there by then, and not in the event.
    /// - Throws: ``Failure``; `CancellationError` when the job is taken off its job.
    func upload(_ ready: Ready, of job: JobContext) async throws -> Ready {
        guard case .put(let url) = job.job.delivery else { return ready }
        // A job that has its result put has one.
        guard let result = ready.results.first, let body = result.inline else {
            throw Failure(.internal, "the result has gone before it was put where the job wants it")
        }
        try await permits.acquire(Urgency(level: job.lane.level))
        defer { permits.release() }
        let start = ContinuousClock.now
        do {
            try await loader.put(body, mediaType: result.facts.format.mediaType, at: url)
        } catch {
            job.trace?.put(at: url, body.count, Lap(from: start), error)
            throw error
        }
        job.trace?.put(at: url, body.count, Lap(from: start), nil)
        bytes.add(body.count)
        var told = ready
        told.results[0].inline = nil
        return told
    }
}
