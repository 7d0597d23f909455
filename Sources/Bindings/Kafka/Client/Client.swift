import CRdKafka
import Concurrency

/// An owned `rd_kafka_t`.
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

    /// Creates a handle.
    /// - Parameters:
    ///   - properties: librdkafka properties by name.
    ///   - enforced: Properties that this module requires. They override `properties`.
    ///   - eventMask: The RD_KAFKA_EVENT bits that the queues deliver.
    /// - Throws: ``KafkaError`` that names the invalid property.
    init(
        _ type: rd_kafka_type_t, properties: [String: String], enforced: [String: String] = [:], eventMask: Int32 = 0,
        events: ClientCallbacks
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

    /// Defaults for servers that differ from librdkafka's. The caller's properties override them.
    private static let defaults = [
        // librdkafka's default of 10 s makes clients wait that long for a restarted broker.
        "reconnect.backoff.max.ms": "1000"
    ]

    private static func set(_ name: String, _ value: String, in configuration: OpaquePointer) throws(KafkaError) {
        var reason = [CChar](repeating: 0, count: 512)
        if rd_kafka_conf_set(configuration, name, value, &reason, reason.count) != RD_KAFKA_CONF_OK {
            throw KafkaError(RD_KAFKA_RESP_ERR__INVALID_ARG, "property \(name): \(text(reason))")
        }
    }

    /// Calls `body`, which may block, with the handle. The handle stays valid meanwhile even if it is closed.
    /// - Throws: The errors of `body`, and ``KafkaError/Code/closed``.
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

    /// Stops librdkafka's threads and frees the handle once no call is in ``use(_:)``. Its queues, topics and messages
    /// must have been destroyed. Blocks: never call it on a task's thread. A second call does nothing.
    func destroy() {
        let isUnused = usage.withLock { usage in
            defer { usage.isClosed = true }
            return !usage.isClosed && usage.users == 0
        }
        if isUnused { rd_kafka_destroy(pointer) }
    }

    deinit {
        // The client was not closed. The sink is retained until librdkafka's threads, which log to it, have ended.
        if usage.withLock({ $0.isClosed }) { return }
        let (pointer, sink) = (SendablePointer(pointer), sink)
        _ = NamedThread(name: "kafka-destroy") {
            rd_kafka_destroy(pointer.value)
            withExtendedLifetime(sink) {}
        }
    }

    // MARK: For the thread that serves the handle's events

    /// Absorbs an error event that concerns connections or from which librdkafka recovers. Returns any other error.
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

    /// Probes a broker when all seemed down, and reports the result. Call it about once a second. It blocks for at most
    /// half a second, and only while probing.
    func watchConnection() {
        guard let limit = sink.watch.withLock({ $0.probe }) else { return }
        var metadata: UnsafePointer<rd_kafka_metadata>?
        let answered = rd_kafka_metadata(pointer, 0, nil, &metadata, limit) == RD_KAFKA_RESP_ERR_NO_ERROR
        if let metadata { rd_kafka_metadata_destroy(metadata) }
        if let news = sink.watch.withLock({ $0.probed(answered: answered) }) { sink.events.connection(news) }
    }
}

/// The context of the log callback.
private final class EventSink: Sendable {
    let events: ClientCallbacks
    let watch = Lock(ConnectionMonitor())

    init(_ events: ClientCallbacks) { self.events = events }
}

/// A pointer that is passed to the one thread that uses it from then on.
struct SendablePointer: @unchecked Sendable {
    let value: OpaquePointer
    init(_ value: OpaquePointer) { self.value = value }
}

// A plain function: librdkafka calls it on its threads.
private func forwardLog(
    _ handle: OpaquePointer?, _ level: Int32, _ facility: UnsafePointer<CChar>?, _ message: UnsafePointer<CChar>?
) {
    guard let handle, let facility, let message, let opaque = rd_kafka_opaque(handle) else { return }
    let sink = Unmanaged<EventSink>.fromOpaque(opaque).takeUnretainedValue()
    sink.events.log(LogLevel(rawValue: level) ?? .debug, String(cString: facility), String(cString: message))
}

/// The text in a zero-terminated C buffer.
func text(_ buffer: [CChar]) -> String {
    String(decoding: buffer.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
}

/// The severity of a line of librdkafka's log: the levels of syslog(3).
public enum LogLevel: Int32, Comparable, Sendable {
    case emergency, alert, critical, error, warning, notice, info, debug

    /// Orders by level number: more urgent levels are smaller.
    public static func < (one: LogLevel, other: LogLevel) -> Bool { one.rawValue < other.rawValue }
}

/// The availability of the brokers for a client.
public enum Connection: Sendable {
    /// Every broker is down, and a probe did not succeed.
    case lost
    /// A broker responds again.
    case restored
}

/// Callbacks of a client. librdkafka writes nothing to standard error.
///
/// The closures are called on threads of librdkafka and of this module and must not block.
public struct ClientCallbacks: Sendable {
    /// Called with a line of librdkafka's log, or with an error from which librdkafka recovers: level, facility
    /// (librdkafka's, such as `FAIL`, or the error's name), message.
    public var log: @Sendable (LogLevel, _ facility: String, _ message: String) -> Void
    /// Called once when the last broker goes away, and once when one returns.
    public var connection: @Sendable (Connection) -> Void

    /// Creates callbacks. The defaults ignore the events.
    public init(
        log: @escaping @Sendable (LogLevel, _ facility: String, _ message: String) -> Void = { _, _, _ in },
        connection: @escaping @Sendable (Connection) -> Void = { _ in }
    ) {
        self.log = log
        self.connection = connection
    }
}

/// Distinguishes a lost cluster from a connection that was closed because it was idle.
///
/// librdkafka reports when all brokers are down, even if the only open connection was idle for too long; it never
/// reports when one is back. So a report is a suspicion, which one probe confirms or clears. After a loss, probes
/// continue until one succeeds.
struct ConnectionMonitor {
    private enum State { case up, suspected, lost }
    private var state = State.up

    /// The timeout of a probe in milliseconds; nil if none is needed now.
    var probe: Int32? {
        switch state {
        case .up: nil
        case .suspected: 500
        case .lost: 100
        }
    }

    /// Records librdkafka's report that all brokers are down.
    mutating func allBrokersDown() {
        if state == .up { state = .suspected }
    }

    /// Records the result of a probe. Returns the change to report, if any.
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
    /// Whole milliseconds, rounded up, for librdkafka's timeouts.
    var milliseconds: Int32 {
        let (seconds, attoseconds) = components
        let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1000)
        if overflow { return seconds < 0 ? 0 : .max }
        return Int32(clamping: max(0, whole + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000))
    }
}

/// Facts about the librdkafka library.
public enum KafkaLibrary {
    /// The version in use, such as `2.0.2`.
    public static var version: String { String(cString: rd_kafka_version_str()) }
}
