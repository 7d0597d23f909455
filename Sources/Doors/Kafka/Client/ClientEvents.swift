/// How urgent a line of librdkafka's log is: the levels of syslog(3).
public enum LogLevel: Int32, Comparable, Sendable {
    case emergency, alert, critical, error, warning, notice, info, debug

    /// More urgent is less.
    public static func < (one: LogLevel, other: LogLevel) -> Bool { one.rawValue < other.rawValue }
}

/// Whether a client has any broker to talk to.
public enum Connection: Sendable {
    /// Every broker is down, and asking again did not help.
    case lost
    /// A broker answers again.
    case restored
}

/// What a client tells on the side. librdkafka writes nothing to standard error by itself.
///
/// The closures are called on threads of librdkafka and of this module and must not block.
public struct ClientEvents: Sendable {
    /// A line of librdkafka's log, or an error it met and goes on mending by itself: level, facility (librdkafka's,
    /// such as `FAIL`, or the error's name), message.
    public var log: @Sendable (LogLevel, _ facility: String, _ message: String) -> Void
    /// The last broker went away, or one came back; each is told once.
    public var connection: @Sendable (Connection) -> Void

    /// Events that nobody listens to, unless told otherwise.
    public init(
        log: @escaping @Sendable (LogLevel, _ facility: String, _ message: String) -> Void = { _, _, _ in },
        connection: @escaping @Sendable (Connection) -> Void = { _ in }
    ) {
        self.log = log
        self.connection = connection
    }
}
