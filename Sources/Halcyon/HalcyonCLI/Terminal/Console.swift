import Concurrency
import Glibc
import JSON
import ProgramSettings

/// Standard output and standard error.
enum Console {
    /// True if standard output, or standard error, is a terminal.
    static let outputIsTerminal = isatty(STDOUT_FILENO) == 1
    static let errorsAreTerminal = isatty(STDERR_FILENO) == 1

    /// Writes text and a line break to standard output without buffering.
    /// - Returns: false if the text could not be written, because the reader has closed the pipe or for the reason in
    ///   ``outputError``.
    @discardableResult
    static func print(_ text: String) -> Bool { print(bytes: Array((text.hasSuffix("\n") ? text : text + "\n").utf8)) }

    /// Writes JSON and a line break to standard output without buffering.
    /// - Returns: false if the JSON could not be written, as for ``print(_:)``.
    @discardableResult
    static func print(json: [UInt8]) -> Bool { print(bytes: json + [UInt8(ascii: "\n")]) }

    private static func print(bytes: [UInt8]) -> Bool {
        if write(bytes, to: STDOUT_FILENO) { return true }
        let code = errno
        // A reader that closes the pipe, such as `head`, has read enough.
        if code != EPIPE {
            firstOutputError.withLock { $0 = $0 ?? FileError("cannot write to standard output", code) }
        }
        return false
    }

    /// The first error of printing; nil if nothing was lost.
    static var outputError: FileError? { firstOutputError.withLock { $0 } }
    private static let firstOutputError = Lock<FileError?>(nil)

    /// Writes a JSON object and a line break to standard output without buffering.
    static func printObject(_ members: (inout JSONWriter) -> Void) { print(json: JSONWriter.object(members)) }

    /// Writes a diagnostic to standard error.
    static func complain(_ text: String) {
        write(Array("halcyon: \(text)\n".utf8), to: STDERR_FILENO)
    }

    /// True if the user can be prompted: standard input and standard error are terminals.
    static let canAsk = isatty(STDIN_FILENO) == 1 && errorsAreTerminal

    /// Prompts for a yes or no until the task is cancelled.
    /// - Returns: true if the user answered yes.
    static func confirm(_ question: String) async -> Bool {
        write(Array("\(question) [y/N] ".utf8), to: STDERR_FILENO)
        while !Task.isCancelled {
            let isThere = await blocking {
                var poll = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
                return Glibc.poll(&poll, 1, 100) > 0
            }
            if isThere { return ["y", "yes"].contains(readLine()?.lowercased()) }
        }
        return false
    }

    /// Writes all bytes.
    /// - Returns: false on failure, with the reason in `errno`.
    @discardableResult
    static func write(_ bytes: [UInt8], to descriptor: Int32) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0 {
                if errno == EINTR { continue }
                guard errno == EAGAIN else { return false }
                // Another process made the terminal non-blocking.
                var poll = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                _ = Glibc.poll(&poll, 1, -1)
                continue
            }
            rest = rest.dropFirst(count)
        }
        return true
    }

    // MARK: Color

    /// Text in green, if standard output is a terminal and NO_COLOR is not set (https://no-color.org).
    static func green(_ text: String) -> String { painted(text, "32") }
    /// Text in red, under the same conditions.
    static func red(_ text: String) -> String { painted(text, "31") }
    /// Text in yellow, under the same conditions.
    static func yellow(_ text: String) -> String { painted(text, "33") }

    private static func painted(_ text: String, _ colour: String) -> String {
        outputIsTerminal && getenv("NO_COLOR") == nil ? "\u{1b}[\(colour)m\(text)\u{1b}[0m" : text
    }
}

extension JSONWriter {
    /// Encodes a JSON object with the given members.
    static func object(_ members: (inout JSONWriter) -> Void) -> [UInt8] {
        var writer = JSONWriter()
        writer.object(members)
        return writer.bytes
    }
}

/// A progress line on standard error. It is not drawn if standard error is not a terminal.
final class ProgressBar: Sendable {
    private let isShown = Lock(false)

    /// Draws the line over the previous one.
    func show(ended: Int, of total: Int, failures: Int, elapsed: Duration) {
        guard Console.errorsAreTerminal else { return }
        let columns = terminalColumns(of: STDERR_FILENO) ?? 80
        let line = Self.line(ended: ended, of: total, failures: failures, elapsed: elapsed, columns: columns)
        isShown.withLock { $0 = true }
        Console.write(Array("\r\(line)\u{1b}[K".utf8), to: STDERR_FILENO)
    }

    /// Erases the line.
    func clear() {
        let wasShown = isShown.withLock { isShown in
            defer { isShown = false }
            return isShown
        }
        if wasShown { Console.write(Array("\r\u{1b}[K".utf8), to: STDERR_FILENO) }
    }

    /// Formats a line such as `[########            ] 8/20, 1 failed, 3.2 s` that fits the width of the terminal.
    static func line(ended: Int, of total: Int, failures: Int, elapsed: Duration, columns: Int) -> String {
        let failed = failures == 0 ? "" : ", \(failures) failed"
        let text = "\(ended)/\(total)\(failed), \(decimal(elapsed / .seconds(1), places: 1)) s"
        let width = min(40, columns - text.count - 4)
        guard width >= 4 else { return String(text.prefix(max(0, columns - 1))) }
        let full = total == 0 ? width : width * ended / total
        return "[\(String(repeating: "#", count: full))\(String(repeating: " ", count: width - full))] \(text)"
    }
}

// MARK: Quantities

/// Formats a number with a fixed number of decimals.
func decimal(_ value: Double, places: Int) -> String {
    let unit = (0..<places).reduce(1) { power, _ in power * 10 }
    let scaled = Int((abs(value) * Double(unit)).rounded())
    let fraction = places == 0 ? "" : "." + String(unit + scaled % unit).dropFirst()
    return "\(value < 0 && scaled > 0 ? "-" : "")\(scaled / unit)\(fraction)"
}

/// Formats a number of bytes in units of 1000, such as `12.3 kB`.
func byteText(_ bytes: Int) -> String {
    var value = Double(bytes)
    for unit in ["B", "kB", "MB", "GB"] {
        if value < 999.5 || unit == "GB" {
            return "\(decimal(value, places: unit == "B" || value >= 99.95 ? 0 : 1)) \(unit)"
        }
        value /= 1000
    }
    return "\(bytes) B"
}

/// Formats milliseconds, such as `0.8 ms`, `45 ms` or `3.2 s`.
func spanText(milliseconds: Double) -> String {
    if milliseconds < 9.95 { return "\(decimal(milliseconds, places: 1)) ms" }
    if milliseconds < 999.5 { return "\(decimal(milliseconds, places: 0)) ms" }
    return "\(decimal(milliseconds / 1000, places: 1)) s"
}

/// Formats a count with a noun in the singular or plural, such as `1 job` or `2 jobs`.
func counted(_ count: Int, _ noun: String) -> String { "\(count) \(noun)\(count == 1 ? "" : "s")" }

extension String {
    /// Pads the string with trailing spaces.
    func padded(to width: Int) -> String { self + String(repeating: " ", count: max(0, width - count)) }
}

extension Duration {
    /// A duration of `count` times 24 hours.
    static func days(_ count: Int) -> Duration { .seconds(count * 86_400) }

    /// The duration in milliseconds.
    var milliseconds: Double { self / .milliseconds(1) }
}
