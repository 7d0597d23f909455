import Concurrency
import HalcyonModel
import HalcyonSources
import Telemetry

/// Uploads results to the URLs that jobs name, by HTTP PUT, before the final event is published. A repeated job uploads
/// the same bytes to the same URL again.
struct UploadStage: Sendable {
    let loader: SourceLoader
    /// The permits of concurrent uploads.
    let permits: PrioritySemaphore
    /// The number of uploaded bytes.
    let bytes: Counter

    init(_ loader: SourceLoader, permits: PrioritySemaphore, metrics: Metrics) {
        self.loader = loader
        self.permits = permits
        bytes = metrics.counter(
            "halcyon_put_bytes_total", help: "Bytes of images uploaded by HTTP PUT.")
    }

    /// Uploads the result if the job requests it.
    /// - Returns: The event to publish. An uploaded result is not included in it.
    /// - Throws: ``JobError``; `CancellationError` if the job is cancelled.
    func upload(_ ready: Ready, of job: JobContext) async throws -> Ready {
        guard case .put(let url) = job.job.delivery else { return ready }
        // The caller ensures that a job with an upload has a result with bytes.
        guard let result = ready.results.first, let body = result.inline else {
            throw JobError(.internal, "the result was removed before it could be uploaded")
        }
        try await permits.acquire(WorkPriority(level: job.lane.level))
        defer { permits.release() }
        let start = ContinuousClock.now
        do {
            try await loader.put(body, mediaType: result.facts.format.mediaType, at: url)
        } catch {
            job.trace?.put(at: url, body.count, Interval(from: start), error)
            throw error
        }
        job.trace?.put(at: url, body.count, Interval(from: start), nil)
        bytes.add(body.count)
        var told = ready
        told.results[0].inline = nil
        return told
    }
}
