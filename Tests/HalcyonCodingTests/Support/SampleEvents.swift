import HalcyonModel

/// The events that docs/events.md shows.
enum SampleEvents {
    static let key = "halcyon:{8a7770243f9d04f66ec3ca6401b0f34e}:fdbc61c3f7e63ad74f25e95b66f219e9"

    static func event(_ id: String, at time: Double, _ body: Event.Body) -> Event {
        Event(
            id: id, time: time, subject: "https://example.org/cat.jpg", jobID: "article-17-hero",
            echo: Job.PassthroughMetadata(metadata: Array(#"{"article":17}"#.utf8)),
            traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", body: body)
    }

    static let started = event("halcyon.jobs-3-1042-started", at: 1_795_257_067.25, .started)

    static let progress = event(
        "halcyon.jobs-3-1042-progress-1-2", at: 1_795_257_069.25,
        .progress(LoadProgress(received: 524_288, total: 1_482_113), attempt: 1))

    static let source = SourceMetadata(
        status: 200, etag: #""5f3c-61e""#, bytes: 1_482_113, format: .jpeg, width: 4000, height: 3000)

    static let ready = event(
        "halcyon.jobs-3-1042-ended", at: 1_795_257_067.395,
        .ready(
            Ready(
                results: [
                    ImageResult(
                        key: key,
                        facts: ResultMetadata(
                            width: 400, height: 300, format: .jpeg, bytes: 23_481,
                            sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
                            source: source),
                        expiresAt: 1_795_260_667.39)
                ],
                origin: .network,
                timings: timings([
                    .queued: 4.1, .fetch: 91.62, .decode: 31.25, .process: 8.5, .encode: 5.875, .store: 0.75,
                    .total: 145.3,
                ]))))

    static let failed = event(
        "halcyon.jobs-3-1042-ended", at: 1_795_257_067.312,
        .failed(
            JobError(.notFound, "https://example.org/cat.jpg answered 404"), attempts: 1,
            timings: timings([.queued: 4.1, .fetch: 58.4, .total: 62.75])))

    static let cancelled = event("halcyon.jobs-3-1042-ended", at: 1_795_257_067.312, .cancelled)
    static let superseded = event(
        "halcyon.jobs-3-1042-ended", at: 1_795_257_067.312, .superseded(by: 1_795_257_067_290))

    static let purged = Event(
        id: "purge-3f0c9a51d2b84e67", time: 1_795_257_067.5, subject: "https://example.org/cat.jpg", jobID: nil,
        body: .purged(
            Purged(
                .source("https://example.org/cat.jpg"), of: "shop-7", count: 5,
                cacheTags: ["source-\(String(repeating: "3fa1", count: 8))"])))

    /// The events of jobs and the purge, in the order of the page.
    static let all = [started, progress, ready, failed, cancelled, superseded, purged]

    private static func batch(_ ready: Int, _ failed: Int, completed: Int64? = nil) -> Batch {
        var batch = Batch(id: "summer-catalogue", tenant: "shop-7", created: 1_795_257_067_250)
        batch.total = 20_000
        (batch.counts.ready, batch.counts.failed, batch.completed) = (ready, failed, completed)
        return batch
    }

    static let batchProgress = BatchEvent(.progress, of: batch(8140, 2), at: 1_795_257_247_312)
    static let batchCompleted = BatchEvent(
        .completed, of: batch(19_993, 7, completed: 1_795_257_531_904), at: 1_795_257_531_904)

    /// The JSON of all events, in the order of the page.
    static let documents = all.map(\.json) + [batchProgress.json, batchCompleted.json]

    static func timings(_ stages: [Timings.Stage: Double]) -> Timings {
        var timings = Timings()
        for (stage, milliseconds) in stages { timings[stage] = milliseconds }
        return timings
    }
}
