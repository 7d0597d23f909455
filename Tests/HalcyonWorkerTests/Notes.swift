import Telemetry
import Threads

/// Keeps what was logged.
final class Notes: LogSink {
    private let lines = Lock<[String]>([])
    func take(_ record: LogRecord) { lines.withLock { $0.append(record.message) } }
    func count(_ message: String) -> Int { lines.withLock { $0.count { $0 == message } } }
}
