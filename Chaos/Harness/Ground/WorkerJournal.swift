import Glibc
import JSON
import Threads

/// What workers said, and how they ended.
public final class WorkerJournal: Sendable {
    private struct State {
        /// What was logged at level error or above, and what was no log line: how often, and the first of them whole.
        var errors: [String: (count: Int, first: String)] = [:]
        var ends: [String] = []
        var starts: [Int: Int] = [:]
    }

    private let state = Lock(State())
    /// Of a file that takes every line; nil for none.
    private let descriptor: Int32?

    /// - Parameter path: of a file that takes every line, and is made anew.
    init(path: String? = nil) {
        descriptor = path.map { open($0, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0o644) }
        if descriptor == -1 { say("no journal can be written: errno \(errno)") }
    }

    deinit { if let descriptor { close(descriptor) } }

    /// A line of a worker's standard error.
    func note(_ line: String, of worker: Int) {
        write("worker \(worker) \(line)")
        guard let json = try? JSON.parse(Array(line.utf8), maximumSize: 1 << 16),
            let level = try? json.member("level")?.string(), let message = try? json.member("message")?.string()
        else { return count("(no log line) \(line.prefix(60))", line, worker) }
        if message == "worker started" { state.withLock { $0.starts[worker, default: 0] += 1 } }
        if level == "error" || level == "critical" { count(message, line, worker) }
    }

    /// A line of the broker's log.
    func noteBroker(_ line: String) { write("kafka \(line)") }

    private func write(_ line: String) {
        guard let descriptor else { return }
        let text = Array((line + "\n").utf8)
        _ = Glibc.write(descriptor, text, text.count)
    }

    /// A worker that ended though nobody wanted it to.
    func noteEnd(_ exit: String, of worker: Int, at time: Double) {
        state.withLock { $0.ends.append("worker \(worker) ended by itself at \(seconds(time)): \(exit)") }
    }

    private func count(_ message: String, _ line: String, _ worker: Int) {
        state.withLock { state in
            // A crash may say very much.
            guard state.errors.count < 50 || state.errors[message] != nil else { return }
            state.errors[message, default: (0, "worker \(worker): \(line)")].count += 1
        }
    }

    /// How often a worker said that it has started.
    func starts(of worker: Int) -> Int { state.withLock { $0.starts[worker] ?? 0 } }
    /// What was logged at level error, the most frequent first.
    public var errors: [(message: String, count: Int, first: String)] {
        state.withLock { $0.errors.map { ($0.key, $0.value.count, $0.value.first) } }.sorted { $0.1 > $1.1 }
    }
    /// Workers that ended by themselves.
    public var ends: [String] { state.withLock { $0.ends } }
}
