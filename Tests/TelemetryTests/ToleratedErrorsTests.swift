import Concurrency
import Telemetry
import TestSupport
import Testing

@Suite struct ToleratedErrorsTests {
    private final class Lines: LogSink {
        private let kept = Lock<[LogRecord]>([])
        func log(_ record: LogRecord) { kept.withLock { $0.append(record) } }
        var records: [LogRecord] { kept.withLock { $0 } }
    }

    private struct Full: Error, CustomStringConvertible {
        let description = "no room"
    }

    private static let counted = #"halcyon_tolerated_errors_total{operation="shelf"}"#

    @Test func eachIsCountedAndTheFirstIsLogged() async {
        let (metrics, lines) = (Metrics(), Lines())
        let errors = ToleratedErrors(of: "shelf", log: Log(level: .info, sink: lines), metrics: metrics)
        #expect(await errors.tolerating { 7 } == 7)
        #expect(metrics.value(of: Self.counted) == 0)
        for _ in 0..<3 {
            let outcome: Int? = await errors.tolerating { throw Full() }
            #expect(outcome == nil)
        }
        #expect(metrics.value(of: Self.counted) == 3)
        #expect(lines.records.count == 1)
        #expect(lines.records.first?.fields["operation"] == .string("shelf"))
        #expect(lines.records.first?.fields["error_type"] == .string("Full"))
        #expect(lines.records.first?.fields["error"] == .string("no room"))
    }

    @Test func theEndOfATaskThatWasCancelledIsNone() async {
        let metrics = Metrics()
        let errors = ToleratedErrors(of: "shelf", log: .silent, metrics: metrics)
        let task = Task { await errors.tolerating { try await Task.sleep(for: .seconds(60)) } == nil }
        task.cancel()
        #expect(await task.value)
        #expect(metrics.value(of: Self.counted) == 0)
    }
}
