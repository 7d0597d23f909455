import Concurrency
import Glibc
import JSON

/// A collector of workers' log lines and exits.
public final class WorkerLogCollector: Sendable {
    private struct State {
        /// Log lines at level error or above and lines that are not JSON: their number and the first one.
        var errors: [String: (count: Int, first: String)] = [:]
        var ends: [String] = []
        var starts: [Int: Int] = [:]
    }

    private let state = Lock(State())
    /// The file for all log lines; nil for none.
    private let descriptor: Int32?

    /// Creates a collector.
    /// - Parameter path: A file for all log lines, which is overwritten.
    init(path: String? = nil) {
        descriptor = path.map { open($0, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0o644) }
        if descriptor == -1 { say("cannot open the journal file: errno \(errno)") }
    }

    deinit { if let descriptor { close(descriptor) } }

    /// Adds a line of a worker's standard error.
    func note(_ line: String, of worker: Int) {
        write("worker \(worker) \(line)")
        guard let json = try? JSON.parse(Array(line.utf8), maximumSize: 1 << 16),
            let level = try? json.member("level")?.string(), let message = try? json.member("message")?.string()
        else { return count("(not a log line) \(line.prefix(60))", line, worker) }
        if message == "worker started" { state.withLock { $0.starts[worker, default: 0] += 1 } }
        if level == "error" || level == "critical" { count(message, line, worker) }
    }

    /// Adds a line of the broker's log.
    func noteBroker(_ line: String) { write("kafka \(line)") }

    private func write(_ line: String) {
        guard let descriptor else { return }
        let text = Array((line + "\n").utf8)
        _ = Glibc.write(descriptor, text, text.count)
    }

    /// Adds an unexpected exit of a worker.
    func noteEnd(_ exit: String, of worker: Int, at time: Double) {
        state.withLock { $0.ends.append("worker \(worker) exited unexpectedly at \(seconds(time)): \(exit)") }
    }

    private func count(_ message: String, _ line: String, _ worker: Int) {
        state.withLock { state in
            // A crash may produce a lot of output.
            guard state.errors.count < 50 || state.errors[message] != nil else { return }
            state.errors[message, default: (0, "worker \(worker): \(line)")].count += 1
        }
    }

    /// Returns how often a worker has logged that it started.
    func starts(of worker: Int) -> Int { state.withLock { $0.starts[worker] ?? 0 } }
    /// The log messages at level error or above, most frequent first.
    public var errors: [(message: String, count: Int, first: String)] {
        state.withLock { $0.errors.map { ($0.key, $0.value.count, $0.value.first) } }.sorted { $0.1 > $1.1 }
    }
    /// The unexpected exits of workers.
    public var ends: [String] { state.withLock { $0.ends } }
}
