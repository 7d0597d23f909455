import Concurrency
import Telemetry
import TestSupport
import Testing

@Suite struct ToleratedErrorsTests {
    private final class RecordList: LogSink {
        private let list = Lock<[LogRecord]>([])
        func log(_ record: LogRecord) { list.withLock { $0.append(record) } }
        var records: [LogRecord] { list.withLock { $0 } }
    }

    private struct Full: Error, CustomStringConvertible {
        let description = "no room"
    }

    private static let counted = #"halcyon_tolerated_errors_total{operation="shelf"}"#

    @Test func countsEachErrorAndLogsTheFirst() async {
        let (metrics, sink) = (Metrics(), RecordList())
        let errors = ToleratedErrors(of: "shelf", log: Log(level: .info, sink: sink), metrics: metrics)
        #expect(await errors.tolerating { 7 } == 7)
        #expect(metrics.value(of: Self.counted) == 0)
        for _ in 0..<3 {
            let outcome: Int? = await errors.tolerating { throw Full() }
            #expect(outcome == nil)
        }
        #expect(metrics.value(of: Self.counted) == 3)
        #expect(sink.records.count == 1)
        #expect(sink.records.first?.fields["operation"] == .string("shelf"))
        #expect(sink.records.first?.fields["error_type"] == .string("Full"))
        #expect(sink.records.first?.fields["error"] == .string("no room"))
    }

    @Test func doesNotCountCancellation() async {
        let metrics = Metrics()
        let errors = ToleratedErrors(of: "shelf", log: .silent, metrics: metrics)
        let task = Task { await errors.tolerating { try await Task.sleep(for: .seconds(60)) } == nil }
        task.cancel()
        #expect(await task.value)
        #expect(metrics.value(of: Self.counted) == 0)
    }
}
