import Concurrency
import Telemetry
import TestSupport

/// A log sink that keeps all records.
final class RecordingLogSink: LogSink {
    private let kept = Lock<[LogRecord]>([])
    func log(_ record: LogRecord) { kept.withLock { $0.append(record) } }
    func count(_ message: String) -> Int { kept.withLock { $0.count { $0.message == message } } }
    var records: [LogRecord] { kept.withLock { $0 } }

    /// Waits for a record with this message, because jobs are logged after their events.
    func first(_ message: String) async throws -> LogRecord {
        try await firstValue("a record with the message \(message)") { self.records.first { $0.message == message } }
    }
}
