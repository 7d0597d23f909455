import CRdKafka
import Threads

/// Owns an `rd_kafka_t`.
///
/// `@unchecked Sendable`: librdkafka's handles may be used from any thread (its INTRODUCTION.md, "Threads and
/// callbacks"); `usage` is a lock.
final class Client: @unchecked Sendable {
    let pointer: OpaquePointer
    private let sink: EventSink
    private let usage = Lock(Usage())

    private struct Usage {
        var users = 0
        var isClosed = false
    }

    /// - Parameters:
    ///   - properties: librdkafka's, by name.
    ///   - enforced: what this module needs to be so; it beats `properties`.
    ///   - eventMask: RD_KAFKA_EVENT bits to be had from the queues.
    /// - Throws: ``KafkaError`` that names the property that was refused.
    init(
        _ type: rd_kafka_type_t, properties: [String: String], enforced: [String: String] = [:], eventMask: Int32 = 0,
        events: ClientEvents
    ) throws(KafkaError) {
        let configuration = rd_kafka_conf_new()!
        var owned = true
        defer { if owned { rd_kafka_conf_destroy(configuration) } }
        let properties = Self.defaults.merging(properties) { $1 }.merging(enforced) { $1 }
        for (name, value) in properties.sorted(by: { $0.key < $1.key }) {
            try Self.set(name, value, in: configuration)
        }
        let sink = EventSink(events)
        rd_kafka_conf_set_opaque(configuration, Unmanaged.passUnretained(sink).toOpaque())
        rd_kafka_conf_set_log_cb(configuration, forwardLog)
        rd_kafka_conf_set_events(configuration, eventMask)
        var reason = [CChar](repeating: 0, count: 512)
        guard let pointer = rd_kafka_new(type, configuration, &reason, reason.count) else {
            throw KafkaError(rd_kafka_last_error(), text(reason))
        }
        owned = false
        self.pointer = pointer
        self.sink = sink
    }

    /// What a server wants and librdkafka's defaults do not give, where the caller says nothing.
    private static let defaults = [
        // The default of 10 s lets a restarted broker wait that long for its clients.
        "reconnect.backoff.max.ms": "1000"
    ]

    private static func set(_ name: String, _ value: String, in configuration: OpaquePointer) throws(KafkaError) {
        var reason = [CChar](repeating: 0, count: 512)
        if rd_kafka_conf_set(configuration, name, value, &reason, reason.count) != RD_KAFKA_CONF_OK {
            throw KafkaError(RD_KAFKA_RESP_ERR__INVALID_ARG, "property \(name): \(text(reason))")
        }
    }

    /// Calls `body`, which may block, with the handle, which stays alive meanwhile even if it is closed.
    /// - Throws: what `body` throws, and ``KafkaError/Code/closed``.
    func use<Success>(_ body: (Client) throws(KafkaError) -> Success) throws(KafkaError) -> Success {
        let isOpen = usage.withLock { usage in
            if !usage.isClosed { usage.users += 1 }
            return !usage.isClosed
        }
        guard isOpen else { throw KafkaError(code: .closed, message: "the client is closed") }
        defer {
            let isLast = usage.withLock { usage in
                usage.users -= 1
                return usage.isClosed && usage.users == 0
            }
            if isLast { rd_kafka_destroy(pointer) }
        }
        return try body(self)
    }

    /// Ends librdkafka's threads and frees the handle, as soon as no one is in ``use(_:)``. Queues, topics and messages
    /// taken from it must have been given back. It blocks: never call it on a task's thread. A second call does
    /// nothing.
    func destroy() {
        let isUnused = usage.withLock { usage in
            defer { usage.isClosed = true }
            return !usage.isClosed && usage.users == 0
        }
        if isUnused { rd_kafka_destroy(pointer) }
    }

    deinit {
        // Nobody closed it. The sink is kept until librdkafka's threads, which log to it, are gone.
        if usage.withLock({ $0.isClosed }) { return }
        let (pointer, sink) = (SendablePointer(pointer), sink)
        _ = WorkThread(name: "kafka-destroy") {
            rd_kafka_destroy(pointer.value)
            withExtendedLifetime(sink) {}
        }
    }

    // MARK: For the thread that serves the handle's events

    /// Takes an error event that is about connections or is mended by librdkafka; gives back any other.
    func absorb(error event: OpaquePointer) -> KafkaError? {
        let code = rd_kafka_event_error(event)
        let message = String(cString: rd_kafka_event_error_string(event))
        if rd_kafka_event_error_is_fatal(event) != 0 {
            return KafkaError(code: KafkaError.Code(code), message: message, isFatal: true)
        }
        switch code {
        case RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN: sink.watch.withLock { $0.allBrokersDown() }
        case RD_KAFKA_RESP_ERR__TRANSPORT, RD_KAFKA_RESP_ERR__RESOLVE, RD_KAFKA_RESP_ERR__TIMED_OUT: break
        default: return KafkaError(code, message)
        }
        sink.events.log(.warning, KafkaError.Code(code).name, message)
        return nil
    }

    /// Writes an error to the client's log.
    func log(_ error: KafkaError) { sink.events.log(.error, error.name, error.message) }

    /// To be called about once a second: asks a broker for a sign of life when all seemed down, and tells what came of
    /// it. Blocks for at most half a second, and only then.
    func watchConnection() {
        guard let limit = sink.watch.withLock({ $0.probe }) else { return }
        var metadata: UnsafePointer<rd_kafka_metadata>?
        let answered = rd_kafka_metadata(pointer, 0, nil, &metadata, limit) == RD_KAFKA_RESP_ERR_NO_ERROR
        if let metadata { rd_kafka_metadata_destroy(metadata) }
        if let news = sink.watch.withLock({ $0.probed(answered: answered) }) { sink.events.connection(news) }
    }
}

/// What the log callback is given.
private final class EventSink: Sendable {
    let events: ClientEvents
    let watch = Lock(ConnectionWatch())

    init(_ events: ClientEvents) { self.events = events }
}

/// A pointer on its way to the one thread that uses it from then on.
struct SendablePointer: @unchecked Sendable {
    let value: OpaquePointer
    init(_ value: OpaquePointer) { self.value = value }
}

// A plain function: librdkafka calls it on threads of its own.
private func forwardLog(
    _ handle: OpaquePointer?, _ level: Int32, _ facility: UnsafePointer<CChar>?, _ message: UnsafePointer<CChar>?
) {
    guard let handle, let facility, let message, let opaque = rd_kafka_opaque(handle) else { return }
    let sink = Unmanaged<EventSink>.fromOpaque(opaque).takeUnretainedValue()
    sink.events.log(LogLevel(rawValue: level) ?? .debug, String(cString: facility), String(cString: message))
}

/// The text in a buffer that C filled up to a zero.
func text(_ buffer: [CChar]) -> String {
    String(decoding: buffer.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
}

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

/// Tells a lost cluster from a connection that was merely closed for being idle.
///
/// librdkafka says when all brokers are down, also when the only open connection had been idle too long; it never says
/// when one is back. So its word is a suspicion, which one probe confirms or clears, and after a loss probes go on
/// until one succeeds.
struct ConnectionWatch {
    private enum State { case up, suspected, lost }
    private var state = State.up

    /// How long a probe may take, in milliseconds; nil when none is needed now.
    var probe: Int32? {
        switch state {
        case .up: nil
        case .suspected: 500
        case .lost: 100
        }
    }

    /// librdkafka says that all brokers are down.
    mutating func allBrokersDown() {
        if state == .up { state = .suspected }
    }

    /// A probe got an answer, or did not. Gives what is to be told, if anything.
    mutating func probed(answered: Bool) -> Connection? {
        defer { state = answered ? .up : .lost }
        switch (state, answered) {
        case (.lost, true): return .restored
        case (.suspected, false): return .lost
        default: return nil
        }
    }
}

extension Duration {
    /// Whole milliseconds, rounded up, as librdkafka's time-outs want them.
    var milliseconds: Int32 {
        let (seconds, attoseconds) = components
        let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1000)
        if overflow { return seconds < 0 ? 0 : .max }
        return Int32(clamping: max(0, whole + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000))
    }
}

/// librdkafka as a whole.
public enum KafkaLibrary {
    /// The version that runs, such as `2.0.2`.
    public static var version: String { String(cString: rd_kafka_version_str()) }
}
