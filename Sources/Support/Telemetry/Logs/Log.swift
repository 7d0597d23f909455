import Concurrency
import Formats

/// A destination of log records: a ``LogWriter``, or a list in a test. It must not block.
public protocol LogSink: Sendable {
    /// Accepts a record.
    func log(_ record: LogRecord)
}

/// A log record.
public struct LogRecord: Sendable {
    /// The time of the event.
    public let time: Timestamp
    /// The severity.
    public let level: LogLevel
    /// A constant sentence. Details belong in the fields.
    public let message: String
    /// The details.
    public let fields: LogMetadata

    /// Creates a record.
    public init(time: Timestamp = .now, level: LogLevel, message: String, fields: LogMetadata = [:]) {
        self.time = time
        self.level = level
        self.message = message
        self.fields = fields
    }
}

/// A logger. It is a value: pass it on, bind fields to it, store it.
///
/// A record below ``level`` costs one comparison: neither its message nor its fields are evaluated.
public struct Log: Sendable {
    /// The lowest level that is logged.
    public let level: LogLevel
    private let sink: (any LogSink)?
    private let bound: LogMetadata

    /// Creates a log without bound fields.
    public init(level: LogLevel, sink: some LogSink) {
        self.init(level: level, sink: sink, bound: [:])
    }

    private init(level: LogLevel, sink: (any LogSink)?, bound: LogMetadata) {
        self.level = level
        self.sink = sink
        self.bound = bound
    }

    /// A log that discards everything.
    public static let silent = Log(level: .critical, sink: nil, bound: [:])

    /// Returns the log with these fields added to every record.
    public func with(_ fields: LogMetadata) -> Log {
        Log(level: level, sink: sink, bound: bound.merging(fields))
    }

    /// True if records of that level are logged. Use it to skip work that only a log needs.
    public func isOn(_ level: LogLevel) -> Bool {
        level >= self.level && sink != nil
    }

    /// Logs at a dynamic level.
    public func log(
        _ level: LogLevel, _ message: @autoclosure () -> String, _ fields: @autoclosure () -> LogMetadata = [:]
    ) {
        guard level >= self.level, let sink else { return }
        sink.log(LogRecord(level: level, message: message(), fields: bound.merging(fields())))
    }

    /// Logs a single step.
    public func trace(_ message: @autoclosure () -> String, _ fields: @autoclosure () -> LogMetadata = [:]) {
        log(.trace, message(), fields())
    }

    /// Logs details for debugging.
    public func debug(_ message: @autoclosure () -> String, _ fields: @autoclosure () -> LogMetadata = [:]) {
        log(.debug, message(), fields())
    }

    /// Logs a normal event.
    public func info(_ message: @autoclosure () -> String, _ fields: @autoclosure () -> LogMetadata = [:]) {
        log(.info, message(), fields())
    }

    /// Logs a rare and significant event.
    public func notice(_ message: @autoclosure () -> String, _ fields: @autoclosure () -> LogMetadata = [:]) {
        log(.notice, message(), fields())
    }

    /// Logs a problem that was handled.
    public func warning(_ message: @autoclosure () -> String, _ fields: @autoclosure () -> LogMetadata = [:]) {
        log(.warning, message(), fields())
    }

    /// Logs a failure that affects a client.
    public func error(_ message: @autoclosure () -> String, _ fields: @autoclosure () -> LogMetadata = [:]) {
        log(.error, message(), fields())
    }

    /// Logs an error after which the process cannot continue.
    public func critical(_ message: @autoclosure () -> String, _ fields: @autoclosure () -> LogMetadata = [:]) {
        log(.critical, message(), fields())
    }
}

/// Permits one line per minute about repeated events of one kind, and counts the others.
public final class LogThrottle: Sendable {
    private struct State {
        /// The time from which the next line is permitted; nil before the first one.
        var nextLine: ContinuousClock.Instant?
        /// The number of events since the last line.
        var unlogged = 0
    }

    private let state = Lock(State())

    /// Creates a throttle that permits the first line.
    public init() {}

    /// Counts an event.
    /// - Parameter now: The time of the event.
    /// - Returns: The number of events since the last line that were not logged; nil if this one is not to be logged
    ///   either.
    public func next(at now: ContinuousClock.Instant = .now) -> Int? {
        state.withLock { state -> Int? in
            if let nextLine = state.nextLine, now < nextLine {
                state.unlogged += 1
                return nil
            }
            defer { state = State(nextLine: now + .seconds(60)) }
            return state.unlogged
        }
    }
}

/// The severity of a log record.
public enum LogLevel: String, CaseIterable, Comparable, Sendable {
    /// A single step.
    case trace
    /// Details for debugging.
    case debug
    /// A normal event.
    case info
    /// A rare and significant event: a start, a stop, a change of state.
    case notice
    /// A problem that was handled.
    case warning
    /// A failure that affects a client.
    case error
    /// An error after which the process cannot continue.
    case critical

    /// Orders by severity.
    public static func < (left: LogLevel, right: LogLevel) -> Bool { left.weight < right.weight }

    private var weight: Int {
        switch self {
        case .trace: 0
        case .debug: 1
        case .info: 2
        case .notice: 3
        case .warning: 4
        case .error: 5
        case .critical: 6
        }
    }
}

/// Named values of a log record, in order. Names are unique; the last value of a name wins.
///
///     log.info("image ready", ["job": job.id, "bytes": body.count, "warm": true])
public struct LogMetadata: Sendable, ExpressibleByDictionaryLiteral {
    /// A value of a field.
    public enum Scalar: Equatable, Sendable {
        /// Any text.
        case string(String)
        /// A whole number.
        case integer(Int64)
        /// A number, which may be infinite or not a number.
        case double(Double)
        /// A Boolean.
        case bool(Bool)
        /// A list of values.
        case list([Scalar])
    }

    private var values = AttributeMap<Scalar>()

    /// All fields, in order.
    var pairs: [AttributeMap<Scalar>.Pair] { values.pairs }

    /// Creates empty metadata.
    public init() {}

    /// Creates metadata from a literal. Fields that are nil are left out.
    public init(dictionaryLiteral elements: (String, any LogValue)...) {
        values = AttributeMap(room: elements.count)
        for (name, value) in elements {
            if let value = value.logValue { self[name] = value }
        }
    }

    /// The value of a field. Setting nil removes the field.
    public subscript(name: String) -> Scalar? {
        get { values[name] }
        set { values[name] = newValue }
    }

    /// Returns these fields merged with `others`, whose values win.
    public func merging(_ others: LogMetadata) -> LogMetadata {
        var merged = self
        merged.values.merge(others.values)
        return merged
    }
}

/// A type whose values can be used as fields in a literal.
public protocol LogValue {
    /// The value; nil to leave the field out.
    var logValue: LogMetadata.Scalar? { get }
}

extension String: LogValue {
    /// The string.
    public var logValue: LogMetadata.Scalar? { .string(self) }
}

extension Int: LogValue {
    /// The integer.
    public var logValue: LogMetadata.Scalar? { .integer(Int64(self)) }
}

extension Int64: LogValue {
    /// The integer.
    public var logValue: LogMetadata.Scalar? { .integer(self) }
}

extension Double: LogValue {
    /// The number.
    public var logValue: LogMetadata.Scalar? { .double(self) }
}

extension Bool: LogValue {
    /// The Boolean.
    public var logValue: LogMetadata.Scalar? { .bool(self) }
}

extension Duration: LogValue {
    /// The duration in seconds.
    public var logValue: LogMetadata.Scalar? { .double(self / .seconds(1)) }
}

extension Array: LogValue where Element: LogValue {
    /// A list of the elements' values.
    public var logValue: LogMetadata.Scalar? { .list(compactMap(\.logValue)) }
}

extension Optional: LogValue where Wrapped: LogValue {
    /// The wrapped value, or nil.
    public var logValue: LogMetadata.Scalar? { flatMap(\.logValue) }
}
