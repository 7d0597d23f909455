import Concurrency
import Telemetry
import Testing

/// Metrics that are read from a callback on export.
@Suite struct ObservableMetricTests {
    private let metrics = Metrics()
    private var text: String { String(decoding: metrics.prometheusText, as: UTF8.self) }

    @Test func isReadOnExport() {
        let number = Lock(1.0)
        metrics.observable(.gauge, "depth", help: "How deep.") { number.withLock { $0 } }
        metrics.observable(.counter, "work_seconds_total", help: "Work.", labels: ["of": "all"]) { 2.5 }
        number.withLock { $0 = 7 }
        #expect(
            text == """
                # HELP depth How deep.
                # TYPE depth gauge
                depth 7
                # HELP work_seconds_total Work.
                # TYPE work_seconds_total counter
                work_seconds_total{of="all"} 2.5

                """)
    }

    @Test func laterRegistrationReplacesTheEarlierOne() {
        for value in [1.0, 2] { metrics.observable(.gauge, "depth", help: "How deep.") { value } }
        #expect(text.hasSuffix("\ndepth 2\n"))
    }

    @Test func callbackMayUseTheMetrics() {
        metrics.observable(.gauge, "depth", help: "How deep.") { [metrics] in
            metrics.gauge("other", help: "Another.").set(3)
            return 1
        }
        #expect(text.contains("\ndepth 1\n"))
        #expect(text.contains("\nother 3\n"))
    }
}
