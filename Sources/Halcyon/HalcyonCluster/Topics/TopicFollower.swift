import Concurrency
import Formats
import Kafka
import Telemetry

/// Follows a whole topic outside of any consumer group: its recent records first, then new ones as they arrive.
///
/// It waits for brokers that are unavailable and for a topic that does not exist yet. The owner must call ``close()``
/// at the end.
public final class TopicFollower: Sendable {
    private struct State {
        /// The next offset of each partition; nil until the topic was opened.
        var positions: [Int32: Int64]?
        /// The ends of the partitions when the topic was first opened.
        var ends: [Int32: Int64] = [:]
        var waiters: [(partition: Int32, offset: Int64, event: AsyncEvent)] = []

        var isAtFirstEnd: Bool {
            guard let positions else { return false }
            return ends.allSatisfy { positions[$0.key, default: 0] >= $0.value }
        }
    }

    private let topic: String
    private let properties: [String: String]
    /// The timestamp of the oldest records to read, in milliseconds since 1970.
    private let oldest: Int64
    private let log: Log
    private let handle: @Sendable (ConsumedRecord, _ isOld: Bool) async -> Void
    private let task = Lock<Task<Void, Never>?>(nil)
    private let beginning = AsyncEvent()
    private let state = Lock(State())

    /// Starts reading and returns immediately.
    /// - Parameters:
    ///   - topic: the topic.
    ///   - properties: the librdkafka properties for reading.
    ///   - memory: the age of the oldest records to read, in seconds.
    ///   - log: the log of outages.
    ///   - handle: the handler of records, called for one record at a time. `isOld` is true for records that were
    ///     written before this reader started.
    public init(
        _ topic: String, properties: [String: String], memory: Double, log: Log,
        handle: @escaping @Sendable (ConsumedRecord, _ isOld: Bool) async -> Void
    ) {
        self.topic = topic
        self.properties = properties
        oldest = Timestamp.now.milliseconds - Int64(memory * 1000)
        self.log = log
        self.handle = handle
        let reading = Task { await read() }
        task.withLock { $0 = reading }
    }

    /// Returns when all records that existed at the start have been handled, when the topic does not exist, or when the
    /// task is cancelled.
    public func caughtUp() async { await beginning.wait() }

    /// Waits until all records of a partition below this offset have been handled, or the task is cancelled.
    public func waitUntilHandled(_ partition: Int32, before offset: Int64) async {
        let event = AsyncEvent()
        let isHandled = state.withLock { state in
            if let position = state.positions?[partition], position >= offset { return true }
            state.waiters.append((partition, offset, event))
            return false
        }
        if !isHandled { await event.wait() }
    }

    /// Stops reading after the record in progress has been handled.
    public func close() async {
        let task = task.withLock { $0 }
        task?.cancel()
        await task?.value
        beginning.signal()
    }

    private func read() async {
        var isTold = false
        while !Task.isCancelled {
            do throws(KafkaError) {
                let positions = state.withLock { $0.positions }
                let reader = try await TopicReader.open(
                    topic, from: positions.map { .offsets($0) } ?? .timestamp(oldest),
                    properties: properties, tellsEnds: true, within: .seconds(3), events: ClientCallbacks())
                if positions == nil {
                    state.withLock { ($0.positions, $0.ends) = (reader.startOffsets, reader.endOffsets) }
                }
                if isTold { log.notice("reading a topic again", ["topic": topic]) }
                isTold = false
                proceed()
                let failure = await follow(reader)
                await reader.close()
                if let failure { throw failure }
            } catch {
                if !isTold { log.warning("reading a topic failed; retrying", ["topic": topic, "error": "\(error)"]) }
                isTold = true
                if error.code == .unknownTopicOrPartition { beginning.signal() }
                await Task.sleepUnlessCancelled(for: .seconds(1))
            }
        }
    }

    /// Handles records as they arrive, until the task is cancelled.
    private func follow(_ reader: TopicReader) async -> KafkaError? {
        do throws(KafkaError) {
            while let batch = try await reader.nextBatch() {
                for record in batch.records {
                    // Some brokers cannot look up offsets by time, so older records are skipped here too.
                    if record.timestamp >= oldest {
                        await handle(record, state.withLock { record.offset < $0.ends[record.partition] ?? 0 })
                    }
                    state.withLock { $0.positions?[record.partition] = record.offset + 1 }
                    proceed()
                }
                for (partition, end) in batch.ends {
                    state.withLock { state in
                        let position = state.positions?[partition] ?? 0
                        state.positions?[partition] = max(end, position)
                    }
                }
                proceed()
            }
            return nil
        } catch {
            return error
        }
    }

    /// Resumes those who wait for the current positions.
    private func proceed() {
        let (isAtFirstEnd, reached) = state.withLock { state in
            let reached = state.waiters.filter { state.positions?[$0.partition, default: 0] ?? 0 >= $0.offset }
            state.waiters.removeAll { waiter in
                waiter.event.isSignaled || reached.contains { $0.event === waiter.event }
            }
            return (state.isAtFirstEnd, reached)
        }
        if isAtFirstEnd { beginning.signal() }
        for waiter in reached { waiter.event.signal() }
    }
}
