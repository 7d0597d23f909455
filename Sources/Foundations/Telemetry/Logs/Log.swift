import CivilTime

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
