import Formats

/// Takes log records: a ``LogWriter``, or a list in a test. It must not block.
public protocol LogSink: Sendable {
    /// Takes one record.
    func take(_ record: LogRecord)
}

/// One thing that happened.
public struct LogRecord: Sendable {
    /// When.
    public let time: Timestamp
    /// How much it matters.
    public let level: LogLevel
    /// A sentence that is the same each time; what differs stands in the fields.
    public let message: String
    /// The particulars.
    public let fields: LogFields

    /// A record of now.
    public init(time: Timestamp = .now, level: LogLevel, message: String, fields: LogFields = [:]) {
        self.time = time
        self.level = level
        self.message = message
        self.fields = fields
    }
}

/// Where code says what it does. A value: hand it on, bind fields to it, keep it.
///
/// A record below ``level`` costs one comparison: neither its message nor its fields are made.
public struct Log: Sendable {
    /// The lowest level that is let through.
    public let level: LogLevel
    private let sink: (any LogSink)?
    private let bound: LogFields

    /// A log without bound fields.
    public init(level: LogLevel, sink: some LogSink) {
        self.init(level: level, sink: sink, bound: [:])
    }

    private init(level: LogLevel, sink: (any LogSink)?, bound: LogFields) {
        self.level = level
        self.sink = sink
        self.bound = bound
    }

    /// Says nothing to nobody.
    public static let silent = Log(level: .critical, sink: nil, bound: [:])

    /// The same log with these fields in every record.
    public func with(_ fields: LogFields) -> Log {
        Log(level: level, sink: sink, bound: bound.merging(fields))
    }

    /// Whether records of that level are let through; for work that only a log would need.
    public func isOn(_ level: LogLevel) -> Bool {
        level >= self.level && sink != nil
    }

    /// Logs at a level that is known only when it happens.
    public func log(
        _ level: LogLevel, _ message: @autoclosure () -> String, _ fields: @autoclosure () -> LogFields = [:]
    ) {
        guard level >= self.level, let sink else { return }
        sink.take(LogRecord(level: level, message: message(), fields: bound.merging(fields())))
    }

    /// Every step.
    public func trace(_ message: @autoclosure () -> String, _ fields: @autoclosure () -> LogFields = [:]) {
        log(.trace, message(), fields())
    }

    /// For finding faults.
    public func debug(_ message: @autoclosure () -> String, _ fields: @autoclosure () -> LogFields = [:]) {
        log(.debug, message(), fields())
    }

    /// What happens in the ordinary course.
    public func info(_ message: @autoclosure () -> String, _ fields: @autoclosure () -> LogFields = [:]) {
        log(.info, message(), fields())
    }

    /// Rare and good to know.
    public func notice(_ message: @autoclosure () -> String, _ fields: @autoclosure () -> LogFields = [:]) {
        log(.notice, message(), fields())
    }

    /// Something went wrong and was dealt with.
    public func warning(_ message: @autoclosure () -> String, _ fields: @autoclosure () -> LogFields = [:]) {
        log(.warning, message(), fields())
    }

    /// Something went wrong and somebody is not served.
    public func error(_ message: @autoclosure () -> String, _ fields: @autoclosure () -> LogFields = [:]) {
        log(.error, message(), fields())
    }

    /// The process cannot go on.
    public func critical(_ message: @autoclosure () -> String, _ fields: @autoclosure () -> LogFields = [:]) {
        log(.critical, message(), fields())
    }
}

/// How much a log record matters.
public enum LogLevel: String, CaseIterable, Comparable, Sendable {
    /// Every step.
    case trace
    /// For finding faults.
    case debug
    /// What happens in the ordinary course.
    case info
    /// Rare and good to know: starts, stops, changes of state.
    case notice
    /// Something went wrong and was dealt with.
    case warning
    /// Something went wrong and somebody is not served.
    case error
    /// The process cannot go on.
    case critical

    /// By weight.
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

/// Named values of a log record, in order; a name stands once and keeps its last value.
///
///     log.info("image ready", ["job": job.id, "bytes": body.count, "warm": true])
public struct LogFields: Sendable, ExpressibleByDictionaryLiteral {
    /// What a field may hold.
    public enum Scalar: Equatable, Sendable {
        /// Any text.
        case string(String)
        /// A whole number.
        case integer(Int64)
        /// A number; it may be infinite or none.
        case double(Double)
        /// True or false.
        case bool(Bool)
        /// Several of them, in order.
        case list([Scalar])
    }

    private var values = NamedValues<Scalar>()

    /// All of them, in order.
    var pairs: [NamedValues<Scalar>.Pair] { values.pairs }

    /// No fields.
    public init() {}

    /// The fields as they stand in the code; those that are nil are left out.
    public init(dictionaryLiteral elements: (String, any LogValue)...) {
        values = NamedValues(room: elements.count)
        for (name, value) in elements {
            if let value = value.logValue { self[name] = value }
        }
    }

    /// The value of a field; setting nil takes the field away.
    public subscript(name: String) -> Scalar? {
        get { values[name] }
        set { values[name] = newValue }
    }

    /// These fields and then `others`, whose values win.
    public func merging(_ others: LogFields) -> LogFields {
        var merged = self
        merged.values.merge(others.values)
        return merged
    }
}

/// What may stand for a field's value in the code.
public protocol LogValue {
    /// The value; nil leaves the field out.
    var logValue: LogFields.Scalar? { get }
}

extension String: LogValue {
    /// Itself.
    public var logValue: LogFields.Scalar? { .string(self) }
}

extension Int: LogValue {
    /// Itself.
    public var logValue: LogFields.Scalar? { .integer(Int64(self)) }
}

extension Int64: LogValue {
    /// Itself.
    public var logValue: LogFields.Scalar? { .integer(self) }
}

extension Double: LogValue {
    /// Itself.
    public var logValue: LogFields.Scalar? { .double(self) }
}

extension Bool: LogValue {
    /// Itself.
    public var logValue: LogFields.Scalar? { .bool(self) }
}

extension Duration: LogValue {
    /// Seconds.
    public var logValue: LogFields.Scalar? { .double(self / .seconds(1)) }
}

extension Array: LogValue where Element: LogValue {
    /// A list of their values.
    public var logValue: LogFields.Scalar? { .list(compactMap(\.logValue)) }
}

extension Optional: LogValue where Wrapped: LogValue {
    /// The value, or no field at all.
    public var logValue: LogFields.Scalar? { flatMap(\.logValue) }
}
