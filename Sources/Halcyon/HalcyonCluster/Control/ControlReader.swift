import Formats
import HalcyonModel
import HalcyonWire
import Kafka
import Telemetry
import Threads

/// Hears what all workers are told: reads the whole topic `control`, outside any group and from a position of its own.
///
/// Brokers that are away are waited for, and so is a topic that is not there. ``close()`` must be called in the end.
public final class ControlReader: Sendable {
    /// Where and from when on it reads.
    public struct Options: Sendable {
        /// The cluster's topics.
        public var topics: Topics
        /// librdkafka's, for reading.
        public var properties: [String: String]
        /// What reads the messages.
        public var reader: JobReader
        /// How far back it begins, in seconds.
        public var memory: Double

        /// Takes the values as they are.
        public init(topics: Topics, properties: [String: String], reader: JobReader, memory: Double) {
            self.topics = topics
            self.properties = properties
            self.reader = reader
            self.memory = memory
        }
    }

    /// A message, as it is handed over.
    public struct Told: Sendable {
        /// What it says.
        public let message: ControlMessage
        /// When it was said, in milliseconds since 1970.
        public let moment: Int64
        /// Whether that was before this reader began.
        public let isOld: Bool
    }

    private let options: Options
    private let log: Log
    private let metrics: ControlMetrics
    private let handle: @Sendable (Told) async -> Void
    private let task = Lock<Task<Void, Never>?>(nil)
    private let beginning = Gate()

    /// Begins to read, and returns at once.
    /// - Parameter handle: called with one message after the other.
    public init(_ options: Options, log: Log, metrics: Metrics, handle: @escaping @Sendable (Told) async -> Void) {
        self.options = options
        self.log = log
        self.metrics = ControlMetrics(metrics)
        self.handle = handle
        let reading = Task { await read() }
        task.withLock { $0 = reading }
    }

    /// Returns when all that was there at the beginning has been handed over, or the topic turned out not to be there. Five seconds
    /// after it was opened that counts as done: what stands at its end may be a transaction's marker, which nobody gets to see.
    public func caughtUp() async { await beginning.wait() }

    /// Ends reading, when what was handed over has been dealt with.
    public func close() async {
        let task = task.withLock { $0 }
        task?.cancel()
        await task?.value
        beginning.open()
    }

    private func read() async {
        var places: [Int32: Int64]?
        var ends: [Int32: Int64] = [:]
        var isTold = false
        let oldest = Timestamp.now.milliseconds - Int64(options.memory * 1000)
        while !Task.isCancelled {
            do throws(KafkaError) {
                let reader = try await TopicReader.open(
                    options.topics.control, from: places.map { .offsets($0) } ?? .timestamp(oldest),
                    properties: options.properties, within: .seconds(3), events: ClientEvents())
                if places == nil {
                    (places, ends) = (reader.startOffsets, reader.endOffsets)
                    Task { [beginning] in
                        await Task.sleepUnlessCancelled(for: .seconds(5))
                        beginning.open()
                    }
                }
                if isTold { log.notice("the control topic is read again") }
                isTold = false
                let failure = await follow(reader, &places, ends, oldest)
                await reader.close()
                if let failure { throw failure }
            } catch {
                if !isTold { log.warning("the control topic is not read; waiting for it", ["error": "\(error)"]) }
                isTold = true
                if error.code == .unknownTopicOrPartition { beginning.open() }
                await Task.sleepUnlessCancelled(for: .seconds(1))
            }
        }
    }

    /// Hands over what comes, until the task is cancelled.
    private func follow(
        _ reader: TopicReader, _ places: inout [Int32: Int64]?, _ ends: [Int32: Int64], _ oldest: Int64
    ) async -> KafkaError? {
        func isAtTheEnd() -> Bool { ends.allSatisfy { places?[$0.key, default: 0] ?? 0 >= $0.value } }
        if isAtTheEnd() { beginning.open() }
        do throws(KafkaError) {
            for try await record in reader {
                // Not every broker can look up a time: what is too old is passed over here too.
                if record.timestamp >= oldest { await take(record, isOld: record.offset < ends[record.partition] ?? 0) }
                places?[record.partition] = record.offset + 1
                if isAtTheEnd() { beginning.open() }
            }
            return nil
        } catch {
            return error
        }
    }

    private func take(_ record: ConsumedRecord, isOld: Bool) async {
        do throws(ControlRefusal) {
            let message = try options.reader.control(record.value ?? [])
            metrics.count(message)
            await handle(Told(message: message, moment: record.timestamp, isOld: isOld))
        } catch {
            metrics.count(error)
            log.warning("control message passed over", ["offset": Int(record.offset), "reason": "\(error)"])
        }
    }
}

/// Counts control messages by what they say.
struct ControlMetrics: Sendable {
    private let cancels, purges, unknown, wrong: Counter

    init(_ metrics: Metrics) {
        func counter(_ kind: String) -> Counter {
            metrics.counter(
                "halcyon_control_messages_total", help: "Messages on the control topic, by what they say.",
                labels: ["kind": kind])
        }
        (cancels, purges) = (counter("cancel"), counter("purge"))
        (unknown, wrong) = (counter("unknown"), counter("wrong"))
    }

    func count(_ message: ControlMessage) {
        switch message {
        case .cancel: cancels.add()
        case .purge: purges.add()
        }
    }

    func count(_ refusal: ControlRefusal) {
        switch refusal {
        case .unknown: unknown.add()
        case .wrong: wrong.add()
        }
    }
}

/// Tells all workers something.
public struct ControlPublisher: Sendable {
    private let producer: Producer
    private let topic: String

    /// The producer stays its maker's, who closes it.
    public init(_ producer: Producer, topics: Topics) {
        self.producer = producer
        topic = topics.control
    }

    /// Writes a message and waits until the brokers have it.
    /// - Throws: ``KafkaError``.
    public func publish(_ message: ControlMessage) async throws(KafkaError) {
        try await producer.send(ProducerRecord(topic: topic, value: message.json))
    }
}
