import HalcyonCluster
import HalcyonTelemetry
import HalcyonWorker
import Telemetry
import TestSupport

/// Workers whose traces are exported to a collector.
struct TracingFixture {
    let cluster: WorkerFixture
    let collector: TraceCollector
    /// The metrics of each worker.
    let workerMetrics: [Metrics]
    /// The metrics of the export and the first worker.
    var metrics: Metrics { workerMetrics[0] }

    /// Runs `body` beside one worker, or beside several that share one exporter.
    /// - Returns: All spans, once the workers have been drained.
    static func with(
        collector: TraceCollector = TraceCollector(), ratio: Double = 1, topics: Topics = Topics(), workers: Int = 1,
        _ change: (inout WorkerOptions) -> Void = { _ in }, _ body: (TracingFixture) async throws -> Void
    ) async throws -> Spans {
        try await WorkerFixture.with(partitions: 2 * workers, topics: topics) { cluster in
            let metrics = (0..<workers).map { _ in Metrics() }
            var options = TraceOptions(endpoint: collector.endpoint)
            options.ratio = ratio
            options.headers["Authorization"] = "Bearer secret"
            options.limits.interval = .milliseconds(50)
            // A slow collector loses no spans.
            (options.timeout, options.limits.retryTimeout) = (.seconds(600), .seconds(600))
            let tracing = Tracing(options, log: .silent, metrics: metrics[0])
            do {
                let fixture = TracingFixture(cluster: cluster, collector: collector, workerMetrics: metrics)
                if workers == 1 {
                    try await cluster.withWorker(metrics: metrics[0], tracer: tracing.tracer, change) {
                        try await body(fixture)
                        try await fixture.waitForSpans()
                    }
                } else {
                    try await cluster.withWorkers(workers, metrics: metrics, tracer: tracing.tracer, change) { _ in
                        try await body(fixture)
                        try await fixture.waitForSpans()
                    }
                }
            } catch {
                await tracing.close(within: .zero)
                throw error
            }
            await tracing.close(within: .seconds(60))
        }
        let spans = Spans(all: try await collector.spans())
        try await collector.stop()
        return spans
    }

    /// Waits until the spans of all jobs have ended, which they do after the terminal events.
    private func waitForSpans() async throws {
        try await until("no job is in flight") {
            workerMetrics.allSatisfy { $0.value(of: "halcyon_jobs_in_flight") == 0 }
        }
    }
}
