import Arguments
import Glibc
import Threads

/// One line on standard error that is drawn again and again; nothing at all where that is no terminal.
final class ProgressBar: Sendable {
    private let isShown = Lock(false)

    /// Draws the line over the last one.
    func show(ended: Int, of total: Int, failures: Int, elapsed: Duration) {
        guard Console.errorsAreTerminal else { return }
        let columns = terminalColumns(of: STDERR_FILENO) ?? 80
        let line = Self.line(ended: ended, of: total, failures: failures, elapsed: elapsed, columns: columns)
        isShown.withLock { $0 = true }
        Console.write(Array("\r\(line)\u{1b}[K".utf8), to: STDERR_FILENO)
    }

    /// Takes the line away.
    func clear() {
        let wasShown = isShown.withLock { isShown in
            defer { isShown = false }
            return isShown
        }
        if wasShown { Console.write(Array("\r\u{1b}[K".utf8), to: STDERR_FILENO) }
    }

    /// `[########            ] 8/20, 1 failed, 3.2 s`, no longer than the terminal is wide.
    static func line(ended: Int, of total: Int, failures: Int, elapsed: Duration, columns: Int) -> String {
        let failed = failures == 0 ? "" : ", \(failures) failed"
        let text = "\(ended)/\(total)\(failed), \(decimal(elapsed / .seconds(1), places: 1)) s"
        let width = min(40, columns - text.count - 4)
        guard width >= 4 else { return String(text.prefix(max(0, columns - 1))) }
        let full = total == 0 ? width : width * ended / total
        return "[\(String(repeating: "#", count: full))\(String(repeating: " ", count: width - full))] \(text)"
    }
}
