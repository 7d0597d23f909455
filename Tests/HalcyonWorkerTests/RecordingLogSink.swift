import Concurrency
import Telemetry

/// A log sink that keeps all records.
final class RecordingLogSink: LogSink {
    private let kept = Lock<[LogRecord]>([])
    func log(_ record: LogRecord) { kept.withLock { $0.append(record) } }
    func count(_ message: String) -> Int { kept.withLock { $0.count { $0.message == message } } }
    var records: [LogRecord] { kept.withLock { $0 } }
}
