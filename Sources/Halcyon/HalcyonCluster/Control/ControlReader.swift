import Concurrency
import Formats
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

    private let options: Options
    private let log: Log
    private let metrics: ControlMetrics
    private let handle: @Sendable (ReceivedControlMessage) async -> Void
    private let task = Lock<Task<Void, Never>?>(nil)
    private let beginning = AsyncEvent()

    /// Starts reading and returns immediately.
    /// - Parameter handle: the handler of messages, called for one message at a time.
    public init(
        _ options: Options, log: Log, metrics: Metrics,
        handle: @escaping @Sendable (ReceivedControlMessage) async -> Void
    ) {
        self.options = options
        self.log = log
        self.metrics = ControlMetrics(metrics)
        self.handle = handle
        let reading = Task { await read() }
        task.withLock { $0 = reading }
    }

    /// Returns when all messages that existed at the start have been handled, or when the topic does not exist. It
    /// waits at most five seconds after the topic was opened, because the last offset may belong to a transaction
    /// marker, which is never delivered.
    public func caughtUp() async { await beginning.wait() }

    /// Stops reading after the message in progress has been handled.
    public func close() async {
        let task = task.withLock { $0 }
        task?.cancel()
        await task?.value
        beginning.signal()
    }

    private func read() async {
        var positions: [Int32: Int64]?
        var ends: [Int32: Int64] = [:]
        var isTold = false
        let oldest = Timestamp.now.milliseconds - Int64(options.memory * 1000)
        while !Task.isCancelled {
            do throws(KafkaError) {
                let reader = try await TopicReader.open(
                    options.topics.control, from: positions.map { .offsets($0) } ?? .timestamp(oldest),
                    properties: options.properties, within: .seconds(3), events: ClientCallbacks())
                if positions == nil {
                    (positions, ends) = (reader.startOffsets, reader.endOffsets)
                    Task { [beginning] in
                        await Task.sleepUnlessCancelled(for: .seconds(5))
                        beginning.signal()
                    }
                }
                if isTold { log.notice("reading the control topic again") }
                isTold = false
                let failure = await follow(reader, &positions, ends, oldest)
                await reader.close()
                if let failure { throw failure }
            } catch {
                if !isTold { log.warning("reading the control topic failed; retrying", ["error": "\(error)"]) }
                isTold = true
                if error.code == .unknownTopicOrPartition { beginning.signal() }
                await Task.sleepUnlessCancelled(for: .seconds(1))
            }
        }
    }

    /// Handles messages as they arrive, until the task is cancelled.
    private func follow(
        _ reader: TopicReader, _ positions: inout [Int32: Int64]?, _ ends: [Int32: Int64], _ oldest: Int64
    ) async -> KafkaError? {
        func isAtTheEnd() -> Bool { ends.allSatisfy { positions?[$0.key, default: 0] ?? 0 >= $0.value } }
        if isAtTheEnd() { beginning.signal() }
        do throws(KafkaError) {
            for try await record in reader {
                // Some brokers cannot look up offsets by time, so older messages are skipped here too.
                if record.timestamp >= oldest {
                    await handle(record, isOld: record.offset < ends[record.partition] ?? 0)
                }
                positions?[record.partition] = record.offset + 1
                if isAtTheEnd() { beginning.signal() }
            }
            return nil
        } catch {
            return error
        }
    }

    private func handle(_ record: ConsumedRecord, isOld: Bool) async {
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

/// The counters of control messages, by kind.
struct ControlMetrics: Sendable {
    private let cancels, purges, presets, unknown, wrong: Counter

    init(_ metrics: Metrics) {
        func counter(_ kind: String) -> Counter {
            metrics.counter(
                "halcyon_control_messages_total", help: "Control messages received, by kind.",
                labels: ["kind": kind])
        }
        (cancels, purges, presets) = (counter("cancel"), counter("purge"), counter("preset"))
        (unknown, wrong) = (counter("unknown"), counter("wrong"))
    }

    func count(_ message: ControlMessage) {
        switch message {
        case .cancel: cancels.add()
        case .purge: purges.add()
        case .preset: presets.add()
        }
    }

    func count(_ refusal: InvalidControlMessageError) {
        switch refusal {
        case .unknown: unknown.add()
        case .wrong: wrong.add()
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
