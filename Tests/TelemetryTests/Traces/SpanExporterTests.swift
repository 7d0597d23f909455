import Concurrency
import TestSupport
import Testing

@testable import Telemetry

extension SpanExporter {
    /// Creates an exporter without resource attributes.
    static func forTests(
        _ limits: ExportLimits = ExportLimits(), _ metrics: Metrics = Metrics(), _ send: @escaping Send
    ) -> SpanExporter {
        SpanExporter(limits, resource: [:], scope: ("tests", "0"), log: .silent, metrics: metrics, send: send)
    }
}

/// A collector that stores requests and returns prepared responses.
private final class CollectorStub: Sendable {
    private let bodies = Lock<[[UInt8]]>([])
    let responses: Lock<[ExportResponse]>

    /// - Parameter responses: the first responses. Later requests are accepted.
    init(_ responses: [ExportResponse] = []) { self.responses = Lock(responses) }

    @Sendable func send(_ body: [UInt8]) async -> ExportResponse {
        bodies.withLock { $0.append(body) }
        return responses.withLock { $0.isEmpty ? .taken(rejected: 0, reason: "") : $0.removeFirst() }
    }

    var count: Int { bodies.withLock { $0.count } }
    /// Returns the number of spans in each request.
    func sizes() async throws -> [Int] {
        var sizes: [Int] = []
        for body in bodies.withLock({ $0 }) { sizes.append(try await TraceCollector.spans([body]).count) }
        return sizes
    }
}

@Suite struct SpanExporterTests {
    private static func spans(_ count: Int) -> [Span] {
        (0..<count).map { _ in Span("a", context: TraceContext(), parent: nil, start: 1, end: 2) }
    }

    private static func limits(_ change: (inout ExportLimits) -> Void = { _ in }) -> ExportLimits {
        var limits = ExportLimits()
        limits.interval = .seconds(3600)
        limits.backoff = Backoff(initial: .milliseconds(1), maximum: .seconds(5), jitter: 0.5)
        change(&limits)
        return limits
    }

    private static func spans(_ outcome: String, _ metrics: Metrics) -> Double {
        metrics.value(of: #"halcyon_trace_spans_total{outcome="\#(outcome)"}"#)
    }

    @Test func exportsFullBatchesAndTheRestOnClose() async throws {
        let (collector, metrics) = (CollectorStub(), Metrics())
        let exporter = SpanExporter.forTests(Self.limits { $0.batch = 10 }, metrics, collector.send)
        for _ in 0..<3 { exporter.add(Self.spans(3)) }
        try await Task.sleep(for: .milliseconds(100))
        #expect(collector.count == 0)
        // Spans that were added together are exported together: nine, then three.
        exporter.add(Self.spans(3))
        try await until("two batches are sent") { collector.count == 2 }
        exporter.add(Self.spans(4))
        await exporter.close(within: .seconds(60))
        #expect(try await collector.sizes() == [9, 3, 4])
        #expect(Self.spans("exported", metrics) == 16 && Self.spans("dropped", metrics) == 0)
        exporter.add(Self.spans(2))
        #expect(Self.spans("dropped", metrics) == 2)
    }

    @Test func exportsAfterTheInterval() async throws {
        let collector = CollectorStub()
        let exporter = SpanExporter.forTests(Self.limits { $0.interval = .milliseconds(50) }, Metrics(), collector.send)
        exporter.add(Self.spans(1))
        try await until("the batch is sent") { collector.count == 1 }
        await exporter.close(within: .zero)
    }

    @Test func dropsSpansWhenTheQueueIsFull() async throws {
        let (gate, metrics) = (AsyncEvent(), Metrics())
        let exporter = SpanExporter.forTests(
            Self.limits {
                $0.queue = 20
                $0.batch = 5
            }, metrics
        ) { _ in
            await gate.wait()
            return .taken(rejected: 0, reason: "")
        }
        exporter.add(Self.spans(5))
        try await until("the first batch is being sent") { Self.spans("dropped", metrics) == 0 && exporter.queued == 0 }
        for _ in 0..<100 { exporter.add(Self.spans(5)) }
        #expect(exporter.queued == 20 && Self.spans("dropped", metrics) == 480)
        gate.signal()
        await exporter.close(within: .seconds(60))
        #expect(Self.spans("exported", metrics) == 25)
    }

    @Test func retriesTransientErrorsAndDropsRejectedSpans() async throws {
        let metrics = Metrics()
        let collector = CollectorStub([
            .unavailable("busy", retryAfter: nil), .unavailable("busy", retryAfter: 0.2),
            .taken(rejected: 1, reason: "old"),
            .refused("no"),
        ])
        let exporter = SpanExporter.forTests(Self.limits { $0.batch = 4 }, metrics, collector.send)
        let start = ContinuousClock.now
        exporter.add(Self.spans(4))
        try await until("the third request is sent") { collector.count == 3 }
        #expect(start.duration(to: .now) >= .milliseconds(200))
        exporter.add(Self.spans(4))
        try await until("the fourth request is sent") { collector.count == 4 }
        await exporter.close(within: .seconds(60))
        #expect(collector.count == 4)
        #expect(Self.spans("exported", metrics) == 3 && Self.spans("dropped", metrics) == 5)
        #expect(metrics.value(of: "halcyon_trace_export_failures_total") == 3)
    }

    @Test func givesUpAfterTheRetryTimeout() async throws {
        let (collector, metrics) = (
            CollectorStub(Array(repeating: .unavailable("away", retryAfter: nil), count: 100_000)), Metrics()
        )
        let exporter = SpanExporter.forTests(
            Self.limits {
                $0.batch = 2
                $0.retryTimeout = .milliseconds(100)
            }, metrics, collector.send)
        var batches = 0
        // On a busy machine, the time may be over after the first attempt.
        repeat {
            exporter.add(Self.spans(2))
            batches += 1
            let spans = Double(2 * batches)
            try await until("the spans are dropped") { Self.spans("dropped", metrics) == spans }
        } while collector.count == batches && batches < 100
        #expect(collector.count > batches)
        await exporter.close(within: .zero)
    }

    /// With a collector that is unavailable, and with one that does not respond.
    @Test(arguments: [true, false]) func closeIsNotDelayedByTheCollector(isAway: Bool) async throws {
        let metrics = Metrics()
        let exporter = SpanExporter.forTests(
            Self.limits {
                $0.batch = 2
                $0.retryTimeout = .seconds(7200)
            }, metrics
        ) { _ in
            if !isAway { try? await Task.sleep(for: .seconds(3600)) }
            return .unavailable("away", retryAfter: 3600)
        }
        for _ in 0..<10 { exporter.add(Self.spans(2)) }
        let took = await ContinuousClock().measure {
            await exporter.close(within: isAway ? .seconds(600) : .seconds(1))
        }
        #expect(took < .seconds(30))
        #expect(Self.spans("dropped", metrics) == 20)
    }

    @Test func backoffGrowsToItsMaximumAndHonorsRetryAfter() {
        for _ in 0..<100 {
            var backoff = ExportLimits().backoff
            for longest in [500, 1000, 2000, 4000, 5000, 5000] {
                #expect((Duration.milliseconds(longest) / 2 ... .milliseconds(longest)).contains(backoff.next()))
            }
            #expect(backoff.next(atLeast: .seconds(60)) == .seconds(60))
        }
    }

    @Test func acceptsConcurrentAdds() async throws {
        let (collector, metrics) = (CollectorStub(), Metrics())
        let exporter = SpanExporter.forTests(
            Self.limits {
                $0.interval = .milliseconds(1)
                $0.batch = 7
                $0.queue = 100_000
            }, metrics, collector.send)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 { group.addTask { for _ in 0..<500 { exporter.add(Self.spans(2)) } } }
        }
        await exporter.close(within: .seconds(60))
        #expect(Self.spans("exported", metrics) == 8000)
    }
}
