import Concurrency
import Telemetry

/// Keeps what was logged.
final class RecordingLogSink: LogSink {
    private let kept = Lock<[LogRecord]>([])
    func log(_ record: LogRecord) { kept.withLock { $0.append(record) } }
    func count(_ message: String) -> Int { kept.withLock { $0.count { $0.message == message } } }
    /// Everything of all of them.
    var records: [LogRecord] { kept.withLock { $0 } }
}
