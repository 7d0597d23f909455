import CRdKafka
import Threads

/// Reads all partitions of a topic, outside any group: follows events, say.
///
/// An `AsyncSequence` for one reader at a time: records of one partition come in the order of their offsets; the
/// sequence goes on for ever, until the task is cancelled or ``close()`` is called. What is not asked for waits in
/// librdkafka's queues, which are bounded (`queued.max.messages.kbytes`, here 4 MiB a partition unless set). When the
/// broker has deleted what would come next, reading goes on with the oldest record there is (`auto.offset.reset`).
/// Partitions that are added to the topic later are not seen: a reader that is opened with its offsets sees them.
///
/// It must be ended by ``close()``.
public actor TopicReader: AsyncSequence {
    /// Where reading begins.
    public enum Start: Sendable {
        /// With the oldest record there is.
        case beginning
        /// With the first record that comes after ``TopicReader/open(_:from:properties:within:events:)`` has returned.
        case end
        /// With the first record of each partition that is as new as this, in milliseconds since 1970; with the oldest
        /// there is on a ``MockCluster``, which cannot look it up.
        case timestamp(Int64)
        /// With these offsets by partition. Partitions left out are read from the beginning: they came later.
        case offsets([Int32: Int64])
    }

    private let loop: EventLoop
    /// The reader's own thread.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// Where reading began, by partition.
    public nonisolated let startOffsets: [Int32: Int64]
    /// Of the oldest record of each partition that was there when the reader was opened. What was to be read before it is gone.
    public nonisolated let oldestOffsets: [Int32: Int64]
    /// One past the newest record of each partition when the reader was opened: a reader that has come this far has
    /// seen all that was there.
    public nonisolated let endOffsets: [Int32: Int64]

    private let client: Client
    private let topic: OpaquePointer
    private let events: OpaquePointer
    private let records: RecordQueue
    private let wakeup: Wakeup
    private var waiter: Waiter?
    private var waitCount = 0
    private var failure: KafkaError?
    private var isClosed = false

    private typealias Waiter = CheckedContinuation<Result<Batch?, KafkaError>, Never>

    /// How many records are handed over at once.
    private static let batchSize = 256

    /// Opens a topic. When this returns the end of every partition has been looked up: no record written from now on is
    /// missed.
    /// - Parameters:
    ///   - properties: librdkafka's; no `group.id` is needed.
    ///   - tellsEnds: whether ``nextBatch()`` tells where a partition ends.
    ///   - limit: for the look-ups in all.
    /// - Throws: ``KafkaError``: ``KafkaError/Code/unknownTopicOrPartition``, a refused property, no answer in time, …
    public static func open(
        _ topic: String, from start: Start, properties: [String: String], tellsEnds: Bool = false,
        within limit: Duration = .seconds(10), events: ClientEvents = ClientEvents()
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
                // Leadership may be on its way to another broker: then the answer is another one a moment later.
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
        wakeup = Wakeup()
        self.client = client
        topic = rd_kafka_topic_new(client.pointer, name, nil)
        events = rd_kafka_queue_get_main(client.pointer)
        let queue = rd_kafka_queue_new(client.pointer)!
        records = RecordQueue(queue, of: name, wakeup)
        // The simple consumer: the one way of librdkafka to read without a group, and so without rights on one.
        for (partition, offset) in starts { rd_kafka_consume_start_queue(topic, partition, offset, queue) }
    }

    deinit {
        wakeup.close()
        let loop = loop
        _ = WorkThread(name: "kafka-stop") { loop.stop() }
    }

    /// Ends the sequence and frees what it holds. A second call returns at once.
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

    /// The records. Use one iterator: another would go on after the batch that the first had been handed.
    public nonisolated func makeAsyncIterator() -> Iterator { Iterator(reader: self) }

    /// Hands over records one by one.
    public struct Iterator: AsyncIteratorProtocol {
        /// What ``next()`` throws.
        public typealias Failure = KafkaError

        fileprivate let reader: TopicReader
        private var batch: ArraySlice<ConsumedRecord> = []

        fileprivate init(reader: TopicReader) { self.reader = reader }

        /// The next record; nil when the task is cancelled or the reader is closed.
        /// - Throws: ``KafkaError`` for what librdkafka does not mend by itself.
        public mutating func next() async throws(KafkaError) -> ConsumedRecord? {
            while batch.isEmpty {
                guard let next = try await reader.nextBatch() else { return nil }
                batch = next.records[...]
            }
            return batch.popFirst()
        }
    }

    /// What is handed over at once.
    public struct Batch: Sendable {
        /// Those of one partition in the order of their offsets.
        public let records: [ConsumedRecord]
        /// Partitions that have been read to their present end, and the offset there: it is behind the last record, and behind what takes
        /// offsets and is no record, such as a transaction's marker. Only where the reader was told to tell.
        public let ends: [Int32: Int64]
    }

    /// All records that are there, up to a limit, or else what comes first; nil when the task is cancelled or the reader is closed. For one
    /// task at a time, and not beside an iterator.
    /// - Throws: ``KafkaError`` for what librdkafka does not mend by itself.
    public func nextBatch() async throws(KafkaError) -> Batch? {
        precondition(waiter == nil, "a TopicReader is read by one task at a time")
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
