import CRdKafka
import Concurrency

/// A reader of all partitions of a topic without a consumer group, for example to follow events.
///
/// It is an `AsyncSequence` for one consumer at a time. Records of one partition arrive in offset order. The sequence
/// is endless until the task is cancelled or ``close()`` is called. Records that are not requested wait in librdkafka's
/// bounded queues (`queued.max.messages.kbytes`, 4 MiB per partition by default here). If the broker has deleted the
/// next record, reading continues with the oldest one available (`auto.offset.reset`). Partitions added to the topic
/// later are not read: open another reader with the current offsets to include them.
///
/// Call ``close()`` at the end.
public actor TopicReader: AsyncSequence {
    /// The start position.
    public enum Start: Sendable {
        /// The oldest available record.
        case beginning
        /// The first record that arrives after ``TopicReader/open(_:from:properties:within:events:)`` has returned.
        case end
        /// The first record of each partition with at least this timestamp, in milliseconds since 1970. On a
        /// ``MockCluster``, which has no lookup by time, the oldest record.
        case timestamp(Int64)
        /// These offsets by partition. Other partitions were added later and are read from the beginning.
        case offsets([Int32: Int64])
    }

    private let loop: EventLoop
    /// The reader's thread.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// The offset at which reading began, by partition.
    public nonisolated let startOffsets: [Int32: Int64]
    /// The low watermark of each partition when the reader was opened. Records before it have been deleted.
    public nonisolated let oldestOffsets: [Int32: Int64]
    /// The high watermark of each partition when the reader was opened. A reader that has reached it has seen
    /// everything that existed then.
    public nonisolated let endOffsets: [Int32: Int64]

    private let client: Client
    private let topic: OpaquePointer
    private let events: OpaquePointer
    private let records: RecordQueue
    private let wakeup: EventFD
    private var waiter: Waiter?
    private var waitCount = 0
    private var failure: KafkaError?
    private var isClosed = false

    private typealias Waiter = CheckedContinuation<Result<Batch?, KafkaError>, Never>

    /// The number of records returned at once.
    private static let batchSize = 256

    /// Opens a topic. The end of every partition is looked up before this returns, so no record written afterwards is
    /// missed.
    /// - Parameters:
    ///   - properties: librdkafka properties; `group.id` is not required.
    ///   - tellsEnds: True if ``nextBatch()`` reports the ends of partitions.
    ///   - limit: The timeout for all lookups together.
    /// - Throws: ``KafkaError``: ``KafkaError/Code/unknownTopicOrPartition``, an invalid property, no response in time,
    ///   …
    public static func open(
        _ topic: String, from start: Start, properties: [String: String], tellsEnds: Bool = false,
        within limit: Duration = .seconds(10), events: ClientCallbacks = ClientCallbacks()
    ) async throws(KafkaError) -> TopicReader {
        let reader = try await blocking { () throws(KafkaError) in
            let defaults = ["queued.max.messages.kbytes": "4096", "auto.offset.reset": "earliest"]
            let client = try Client(
                RD_KAFKA_CONSUMER, properties: defaults.merging(properties) { $1 },
                enforced: [
                    "enable.auto.commit": "false", "enable.auto.offset.store": "false",
                    "enable.partition.eof": "\(tellsEnds)",
                ],
                eventMask: RD_KAFKA_EVENT_ERROR, events: events)
            do throws(KafkaError) {
                let deadline = Deadline(limit)
                // Leadership may be moving to another broker. Then the result is different a moment later.
                let watermarks = try deadline.retrying { () throws(KafkaError) in
                    try client.watermarks(of: topic, deadline)
                }
                return TopicReader(
                    client, topic, starts: try client.offsets(of: topic, for: start, watermarks, deadline),
                    watermarks)
            } catch {
                client.destroy()
                throw error
            }
        }
        await reader.begin()
        return reader
    }

    private init(_ client: Client, _ name: String, starts: [Int32: Int64], _ watermarks: [Int32: Range<Int64>]) {
        loop = EventLoop(name: "kafka-reader")
        startOffsets = starts
        oldestOffsets = watermarks.mapValues(\.lowerBound)
        endOffsets = watermarks.mapValues(\.upperBound)
        wakeup = EventFD()
        self.client = client
        topic = rd_kafka_topic_new(client.pointer, name, nil)
        events = rd_kafka_queue_get_main(client.pointer)
        let queue = rd_kafka_queue_new(client.pointer)!
        records = RecordQueue(queue, of: name, wakeup)
        // librdkafka's simple consumer is its only way to read without a group, and therefore without permissions for
        // one.
        for (partition, offset) in starts { rd_kafka_consume_start_queue(topic, partition, offset, queue) }
    }

    deinit {
        wakeup.close()
        let loop = loop
        _ = NamedThread(name: "kafka-stop") { loop.stop() }
    }

    /// Ends the sequence and frees its resources. A second call returns immediately.
    public func close() async {
        if isClosed { return }
        isClosed = true
        loop.unwatch(wakeup.descriptor)
        answer(.success(nil))
        wakeup.detach(events)
        rd_kafka_queue_destroy(events)
        let handle = SendablePointer(topic)
        // Waits for librdkafka's thread, partition by partition.
        await blocking { [startOffsets] in
            for partition in startOffsets.keys { rd_kafka_consume_stop(handle.value, partition) }
            rd_kafka_topic_destroy(handle.value)
        }
        records.destroy()
        await blocking { [client] in client.destroy() }
    }

    // MARK: Sequence

    /// Creates an iterator. Use only one: another would continue after the batch of the first.
    public nonisolated func makeAsyncIterator() -> Iterator { Iterator(reader: self) }

    /// Iterates over single records.
    public struct Iterator: AsyncIteratorProtocol {
        /// The error type of ``next()``.
        public typealias Failure = KafkaError

        fileprivate let reader: TopicReader
        private var batch: ArraySlice<ConsumedRecord> = []

        fileprivate init(reader: TopicReader) { self.reader = reader }

        /// The next record; nil if the task is cancelled or the reader is closed.
        /// - Throws: ``KafkaError`` for errors from which librdkafka does not recover.
        public mutating func next() async throws(KafkaError) -> ConsumedRecord? {
            while batch.isEmpty {
                guard let next = try await reader.nextBatch() else { return nil }
                batch = next.records[...]
            }
            return batch.popFirst()
        }
    }

    /// Records that are returned together.
    public struct Batch: Sendable {
        /// The records. Those of one partition are in offset order.
        public let records: [ConsumedRecord]
        /// The partitions that have been read to their current end, with the offset there. It is past the last record
        /// and past offsets that hold no record, such as a transaction marker. Empty unless the reader was opened with
        /// `tellsEnds`.
        public let ends: [Int32: Int64]
    }

    /// Returns all available records up to a limit, or waits for the first; nil if the task is cancelled or the reader
    /// is closed. Only one task may call it at a time, and not while an iterator is in use.
    /// - Throws: ``KafkaError`` for errors from which librdkafka does not recover.
    public func nextBatch() async throws(KafkaError) -> Batch? {
        precondition(waiter == nil, "two tasks read from one TopicReader at the same time")
        waitCount += 1
        let number = waitCount
        let result = await withCancellableContinuation { continuation in
            waiter = continuation
            if !Task.isCancelled { wake() }
        } onCancel: {
            Task { await cancel(number) }
        }
        return try result.get()
    }

    private func cancel(_ number: Int) {
        if number == waitCount { answer(.success(nil)) }
    }

    private func answer(_ result: Result<Batch?, KafkaError>) {
        waiter.take()?.resume(returning: result)
    }

    // MARK: On the loop

    private func begin() {
        loop.watch(wakeup.descriptor, for: .readable) { _ in self.assumeIsolated { $0.wake() } }
        wakeup.attach(events)
        tick()
    }

    private func tick() {
        if isClosed { return }
        client.watchConnection()
        wake()
        loop.schedule(after: .seconds(1)) { self.assumeIsolated { $0.tick() } }
    }

    private func wake() {
        wakeup.drain()
        while !isClosed, let event = rd_kafka_queue_poll(events, 0) {
            if rd_kafka_event_type(event) == RD_KAFKA_EVENT_ERROR, let error = client.absorb(error: event) {
                fail(error)
            }
            rd_kafka_event_destroy(event)
        }
        if waiter == nil { return }
        if isClosed { return answer(.success(nil)) }
        var credit = Credit(records: Self.batchSize, bytes: .max)
        let pull = records.pull(Self.batchSize, on: &credit) { fail($0) }
        if !pull.records.isEmpty || pull.end != nil {
            let ends = pull.end.map { [$0.partition: $0.offset] } ?? [:]
            answer(.success(Batch(records: pull.records, ends: ends)))
        } else if let failure = failure.take() {
            answer(.failure(failure))
        }
    }

    private func fail(_ error: KafkaError) {
        if error.isRetriable { client.log(error) } else { failure = error }
    }
}
