import HalcyonCoding
import HalcyonModel
import Kafka
import Telemetry

/// Reads the messages for all workers: the whole topic `control`, outside of any consumer group and from its own
/// position.
///
/// It waits for brokers that are unavailable and for a topic that does not exist yet. The owner must call ``close()``
/// at the end.
public final class ControlReader: Sendable {
    /// The topic, the client properties and the starting point of a reader.
    public struct Options: Sendable {
        /// The cluster's topics.
        public var topics: Topics
        /// The librdkafka properties for reading.
        public var properties: [String: String]
        /// The decoder of the messages.
        public var reader: JobDecoder
        /// The age of the oldest messages to read, in seconds.
        public var memory: Double

        /// Creates options from all values.
        public init(topics: Topics, properties: [String: String], reader: JobDecoder, memory: Double) {
            self.topics = topics
            self.properties = properties
            self.reader = reader
            self.memory = memory
        }
    }

    /// A message that is passed to the handler.
    public struct ReceivedControlMessage: Sendable {
        /// The decoded message.
        public let message: ControlMessage
        /// The time of the message, in milliseconds since 1970.
        public let moment: Int64
        /// True if the message was written before this reader started.
        public let isOld: Bool
    }

    private let follower: TopicFollower

    /// Starts reading and returns immediately.
    /// - Parameter handle: the handler of messages, called for one message at a time.
    public init(
        _ options: Options, log: Log, metrics: Metrics,
        handle: @escaping @Sendable (ReceivedControlMessage) async -> Void
    ) {
        let metrics = ControlMetrics(metrics)
        follower = TopicFollower(
            options.topics.control, properties: options.properties, memory: options.memory, log: log
        ) { record, isOld in
            do throws(InvalidControlMessageError) {
                let message = try options.reader.control(record.value ?? [])
                metrics.count(message)
                await handle(ReceivedControlMessage(message: message, moment: record.timestamp, isOld: isOld))
            } catch {
                metrics.count(error)
                log.warning("ignored an invalid control message", ["offset": Int(record.offset), "reason": "\(error)"])
            }
        }
    }

    /// Returns when all messages that existed at the start have been handled, or when the topic does not exist.
    public func caughtUp() async { await follower.caughtUp() }

    /// Stops reading after the message in progress has been handled.
    public func close() async { await follower.close() }
}

/// The counters of control messages, by kind.
struct ControlMetrics: Sendable {
    private let counters: [String: Counter]

    init(_ metrics: Metrics) {
        let kinds = ["cancel", "purge", "preset", "pause", "resume", "list", "unknown", "wrong"]
        counters = Dictionary(
            uniqueKeysWithValues: kinds.map { kind in
                (
                    kind,
                    metrics.counter(
                        "halcyon_control_messages_total", help: "Control messages received, by kind.",
                        labels: ["kind": kind])
                )
            })
    }

    func count(_ message: ControlMessage) {
        let kind =
            switch message {
            case .cancel: "cancel"
            case .purge: "purge"
            case .preset: "preset"
            case .pause: "pause"
            case .resume: "resume"
            case .list: "list"
            }
        counters[kind]?.add()
    }

    func count(_ refusal: InvalidControlMessageError) {
        switch refusal {
        case .unknown: counters["unknown"]?.add()
        case .wrong: counters["wrong"]?.add()
        }
    }
}

/// Sends control messages to all workers.
public struct ControlPublisher: Sendable {
    private let producer: Producer
    private let topic: String

    /// Creates a publisher that uses the given producer. The caller owns the producer and closes it.
    public init(_ producer: Producer, topics: Topics) {
        self.producer = producer
        topic = topics.control
    }

    /// Sends a message and waits until the brokers have acknowledged it.
    /// - Throws: ``KafkaError``.
    public func publish(_ message: ControlMessage) async throws(KafkaError) {
        try await producer.send(ProducerRecord(topic: topic, value: message.json))
    }
}
