import Concurrency
import HalcyonTelemetry
import HalcyonWorker
import Subprocess
import Telemetry
import TestSupport
import Testing

/// Unavailable, busy and slow collectors, which delay no job.
@Suite(.limitedParallelism, .extended) struct CollectorFaultTests {
    private static func spans(_ outcome: String, _ metrics: Metrics) -> Double {
        metrics.value(of: #"halcyon_trace_spans_total{outcome="\#(outcome)"}"#)
    }

    /// Runs jobs whose traces go to `endpoint`, and returns the time it took to close the exporter.
    private static func run(_ endpoint: String, _ metrics: Metrics, closingWithin limit: Duration) async throws
        -> Duration
    {
        let origin = try CoalescingTests.origin(after: .zero)
        var options = TraceOptions(endpoint: endpoint)
        options.limits.interval = .milliseconds(20)
        options.limits.queue = 64
        options.timeout = .seconds(600)
        let tracing = Tracing(options, log: .silent, metrics: metrics)
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker(metrics: metrics, tracer: tracing.tracer) {
                for number in 0..<60 {
                    try await cluster.submit(CoalescingTests.job("\(number)", origin, "/a"))
                }
                #expect(try await CoalescingTests.terminalEvents(60, of: cluster).allSatisfy { $0.kind == "ready" })
            }
        }
        let took = await ContinuousClock().measure { await tracing.close(within: limit) }
        try await origin.stop()
        return took
    }

    @Test func jobsSucceedAndLostSpansAreCountedWithoutACollector() async throws {
        let metrics = Metrics()
        let took = try await Self.run(
            "http://127.0.0.1:\(LoopbackPort.reserve())/v1/traces", metrics, closingWithin: .seconds(600))
        #expect(took < .seconds(60))
        #expect(Self.spans("exported", metrics) == 0 && Self.spans("dropped", metrics) >= 120)
        #expect(metrics.value(of: "halcyon_trace_export_failures_total") > 0)
    }

    @Test func unresponsiveCollectorDoesNotDelayClosing() async throws {
        let (collector, metrics) = (TraceCollector { _ in [.awaitEnd] }, Metrics())
        let took = try await Self.run(collector.endpoint, metrics, closingWithin: .milliseconds(300))
        // A busy machine may need more time for the rest.
        #expect(took < .seconds(30))
        #expect(Self.spans("exported", metrics) == 0 && Self.spans("dropped", metrics) >= 120)
        #expect(collector.origin.requests.count == 1)
        try await collector.stop()
    }

    @Test func honorsRetryAfterOfABusyCollector() async throws {
        let requests = Counter()
        let collector = TraceCollector { _ in
            requests.next() < 2
                ? RawOrigin.answer("503 Service Unavailable", ["Retry-After: 1"]) : TraceCollector.taken
        }
        let start = ContinuousClock.now
        let spans = try await TracingFixture.with(collector: collector) { fixture in
            try await fixture.cluster.submit(#"{"id":"a","source":"initials:AB","width":10}"#)
            _ = try await fixture.cluster.events.terminal(of: "a")
            try await until("the spans are exported") { Self.spans("exported", fixture.metrics) > 0 }
        }
        #expect(start.duration(to: .now) >= .seconds(2))
        // One export, sent three times: a collector identifies spans by their ids. On a busy machine, some spans of the
        // job are part of another export.
        let bodies = Set(collector.origin.requests.prefix(3).map(\.body))
        #expect(bodies.count == 1 && !spans.jobs.isEmpty)
    }

    @Test func requestsConformToOTLP() async throws {
        let collector = TraceCollector()
        _ = try await TracingFixture.with(collector: collector) { fixture in
            try await fixture.cluster.submit(#"{"id":"a","source":"initials:AB","width":10}"#)
            _ = try await fixture.cluster.events.terminal(of: "a")
        }
        let head = try #require(collector.origin.requests.first).head.lowercased()
        #expect(head.hasPrefix("post /v1/traces http/1.1"))
        #expect(head.contains("content-type: application/json\r\n") && head.contains("authorization: bearer secret"))
    }

    /// SIGTERM during an export to a collector that never answers.
    @Test func workerExitsDespiteAnUnresponsiveCollector() async throws {
        let collector = TraceCollector { _ in [.awaitEnd] }
        try await WorkerFixture.with { cluster in
            let worker = try await WorkerProcess.start(
                brokers: cluster.broker.bootstrapServers, redisPort: cluster.redis.port,
                [
                    "OTEL_EXPORTER_OTLP_ENDPOINT": collector.origin.url(""), "HALCYON_TRACES_INTERVAL": "10ms",
                    "HALCYON_TRACES_TIMEOUT": "600s", "HALCYON_WORKER_GRACE": "3s", "HALCYON_LOG_LEVEL": "critical",
                ])
            try await cluster.submit(#"{"id":"a","source":"initials:AB","width":10}"#)
            _ = try await cluster.events.terminal(of: "a")
            try await until("the collector receives a request") { collector.origin.requests.count == 1 }
            #expect(collector.origin.requests[0].path == "/v1/traces")
            let start = ContinuousClock.now
            worker.send(15)
            #expect(await worker.exit() == .code(0))
            #expect(start.duration(to: .now) < .seconds(30))
        }
        try await collector.stop()
    }
}

/// A counter that starts at 0.
private final class Counter: Sendable {
    private let count = Lock(0)

    func next() -> Int {
        count.withLock { count in
            defer { count += 1 }
            return count
        }
    }
}
