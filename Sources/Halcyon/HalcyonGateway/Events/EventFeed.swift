import Concurrency
import Formats
import HalcyonCluster
import HalcyonCoding
import HalcyonModel
import JSON
import Kafka
import Telemetry

/// Reads the committed events of the cluster with one reader for the whole gateway. It delivers them to event streams
/// and to requests that wait for the end of a job.
///
/// Waits for brokers that are down and for a topic that does not exist. A reader that fails is reopened at its last
/// position. ``close()`` must be called at the end.
final class EventFeed: Sendable {
    let options: EventOptions
    let hub: EventBroadcaster
    let topic: String
    /// The librdkafka properties for reading committed records.
    let properties: [String: String]
    let log: Log
    let metrics: EventMetrics
    /// Called with the target of a purge; nil for a target that this version does not know.
    private let onPurge: @Sendable (Purged.Target?) -> Void
    let waiters = JobCompletionRegistry()
    /// The figures and jobs of the recent past.
    let history: HistoryStore
    /// Limits the number of streams that concurrently read missed events from Kafka.
    let replays: PrioritySemaphore
    private let caughtUp = AsyncEvent()
    private let connection = Lock((isOpen: false, isLost: false))
    private let reader = Lock<TopicReader?>(nil)
    private let tasks = Lock<[Task<Void, Never>]>([])
    /// Contains one element while events are to be announced.
    private let news = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

    private init(
        _ options: EventOptions, _ topic: String, _ properties: [String: String], _ log: Log, _ metrics: Metrics,
        _ onPurge: @escaping @Sendable (Purged.Target?) -> Void
    ) {
        self.onPurge = onPurge
        self.options = options
        self.topic = topic
        // Overrides the operator's setting: records of aborted transactions must never be delivered.
        self.properties = properties.merging(["isolation.level": "read_committed"]) { $1 }
        self.log = log
        self.metrics = EventMetrics(metrics)
        hub = EventBroadcaster(options)
        history = HistoryStore(options)
        replays = PrioritySemaphore(options.replays)
    }

    /// Starts the feed in the background.
    /// - Parameters:
    ///   - properties: the librdkafka properties for reading.
    ///   - onPurge: called with the target of a purge; nil for a target that this version does not know.
    static func start(
        _ options: EventOptions, topics: Topics, properties: [String: String], log: Log, metrics: Metrics,
        onPurge: @escaping @Sendable (Purged.Target?) -> Void = { _ in }
    ) -> EventFeed {
        let feed = EventFeed(options, topics.events, properties, log, metrics, onPurge)
        feed.tasks.withLock { tasks in
            tasks = [
                Task { await feed.read() }, Task { await feed.announce() }, Task { await feed.tick() },
                Task { await feed.lookForPartitions() },
            ]
        }
        return feed
    }

    /// Waits until the feed has caught up and sees all later events. Also returns if the task is cancelled or the feed
    /// is closed.
    func ready() async { await caughtUp.wait() }

    /// True if the feed is caught up and connected to the brokers.
    var isFollowing: Bool {
        caughtUp.isSignaled && connection.withLock { $0.isOpen && !$0.isLost }
    }

    /// Registers a waiter for the end of a job. It sees events that arrive after this call and after ``ready()``.
    func wait(for jobID: String) -> JobCompletionWaiter { waiters.add(jobID) }

    /// Ends all streams in a way that lets clients reconnect. Waiters for jobs are still served.
    func endStreams() { hub.end() }

    /// Stops the feed and cancels all waiters.
    func close() async {
        hub.end()
        news.continuation.finish()
        let tasks = tasks.withLock { $0 }
        for task in tasks { task.cancel() }
        for task in tasks { await task.value }
        waiters.close()
        caughtUp.signal()
    }

    // MARK: Reading

    private func read() async {
        var cursor: TopicCursor?
        var isTold = false
        while !Task.isCancelled {
            do throws(KafkaError) {
                let reader = try await open(cursor)
                if isTold { log.notice("reading events again") }
                isTold = false
                connection.withLock { $0 = (true, false) }
                self.reader.withLock { $0 = reader }
                let failure = await follow(reader, &cursor)
                connection.withLock { $0.isOpen = false }
                await reader.close()
                if let failure { throw failure }
            } catch {
                if !isTold { log.warning("failed to read events; retrying", ["error": "\(error)"]) }
                isTold = true
                await Task.sleepUnlessCancelled(for: .seconds(1))
            }
        }
    }

    private func open(_ cursor: TopicCursor?) async throws(KafkaError) -> TopicReader {
        let oldest = Timestamp.now.milliseconds - Int64(options.memory / .milliseconds(1))
        return try await TopicReader.open(
            topic, from: cursor.map { .offsets($0.offsets) } ?? .timestamp(oldest), properties: properties,
            tellsEnds: true, within: .seconds(3),
            events: ClientCallbacks(
                log: ClientCallbacks.logging(to: log).log,
                connection: { [connection] told in connection.withLock { $0.isLost = told == .lost } }))
    }

    /// Delivers records until the task is cancelled.
    private func follow(_ reader: TopicReader, _ cursor: inout TopicCursor?) async -> KafkaError? {
        var here = cursor ?? TopicCursor(reader.startOffsets)
        // Older events are buffered for clients that reconnect, and are not announced.
        var past = hub.cursor == nil ? EventRingBuffer(limit: options.ringBytes, at: here) : nil
        if past != nil { history.removeAll() }
        let present = TopicCursor(reader.endOffsets)
        do throws(KafkaError) {
            while true {
                if let ring = past, here.hasReached(present) {
                    hub.begin(ring)
                    past = nil
                    caughtUp.signal()
                }
                guard let batch = try await reader.nextBatch() else { return nil }
                var records: [BroadcastEvent] = []
                for record in batch.records {
                    here.pass(record.partition, record.offset)
                    guard let json = record.value else { continue }
                    records.append(BroadcastEvent(record, json, here))
                    if record.offset >= present[record.partition] || past == nil {
                        receive(record.key, json)
                    }
                }
                history.add(batch.records.compactMap(\.value))
                for (partition, end) in batch.ends { here.pass(partition, end - 1) }
                if past == nil {
                    hub.append(records, here)
                    news.continuation.yield()
                } else {
                    for record in records { past?.append(record) }
                    past?.advance(to: here)
                }
                cursor = here
            }
        } catch {
            // The older events must be read again.
            if past != nil { cursor = nil }
            return error
        }
    }

    /// Notifies the waiters that the event concerns.
    private func receive(_ key: [UInt8]?, _ json: [UInt8]) {
        if let key { waiters.receive(key: key, json: json) }
        // The key of a purge event is the purged target, which may equal the id of a job.
        if DecodedEvent.mayBePurge(json), let event = DecodedEvent(json: json),
            event.type == Event.Kind.purged.rawValue
        {
            onPurge(event.purged)
        }
    }

    /// Reopens the reader when the topic has gained partitions, because a reader sees only those that existed when it
    /// was opened.
    private func lookForPartitions() async {
        let admin: Admin
        do {
            admin = try Admin(properties: properties)
        } catch {
            return log.error("cannot watch the events topic for new partitions", ["error": "\(error)"])
        }
        while !Task.isCancelled {
            await Task.sleepUnlessCancelled(for: options.partitionInterval)
            // A failed request is repeated after the interval.
            guard let reader = reader.withLock({ $0 }), let metadata = try? await admin.metadata(within: .seconds(2)),
                let partitions = metadata.topics[topic], partitions.count > reader.startOffsets.count
            else { continue }
            log.notice("the events topic has new partitions", ["partitions": partitions.count])
            // Reading resumes at the last position, and at the beginning of new partitions.
            await reader.close()
        }
        await admin.close()
    }

    // MARK: Delivery

    /// Wakes subscribers. The pause grows with their number, so that each wakeup delivers more events and all wakeups
    /// together use a bounded share of the CPU.
    private func announce() async {
        for await _ in news.stream {
            let count = hub.announce()
            if count > 100 { await Task.sleepUnlessCancelled(for: .microseconds(10 * count)) }
        }
    }

    private func tick() async {
        while !Task.isCancelled {
            hub.tick()
            await Task.sleepUnlessCancelled(for: min(.seconds(1), options.keepAlive / 4))
        }
    }
}

/// An event that is shared by all streams. Its SSE frame is created once, and its JSON is parsed at most once.
final class BroadcastEvent: Sendable {
    let partition: Int32
    let offset: Int64
    /// The position of the feed after this event.
    let cursor: TopicCursor
    /// The SSE frame with the feed's cursor as its id.
    let frame: [UInt8]
    /// The offset of the JSON in the frame.
    private let jsonStart: Int
    private let parsed = Lock<EventAttributes??>(nil)

    /// - Parameters:
    ///   - json: the value of the record.
    ///   - cursor: the position after the record.
    init(_ record: ConsumedRecord, _ json: [UInt8], _ cursor: TopicCursor) {
        (partition, offset) = (record.partition, record.offset)
        self.cursor = cursor
        let head = ServerSentEvents.id(cursor) + ServerSentEvents.dataName
        jsonStart = head.count
        frame = head + json.onOneLine + ServerSentEvents.end
    }

    /// The JSON of the event.
    var json: [UInt8] { Array(frame[jsonStart..<frame.count - ServerSentEvents.end.count]) }

    /// The approximate memory use in bytes.
    var bytes: Int { frame.count + cursor.next.count * 8 + 256 }

    /// Returns the frame with another cursor as its id.
    func frame(at cursor: TopicCursor) -> [UInt8] {
        cursor == self.cursor
            ? frame : ServerSentEvents.id(cursor) + frame[(jsonStart - ServerSentEvents.dataName.count)...]
    }

    /// The parsed attributes; nil if the record is not an event of Halcyon.
    var attributes: EventAttributes? {
        if let known = parsed.withLock({ $0 }) { return known }
        // Two threads may parse the JSON concurrently, with the same result.
        let attributes = EventAttributes(json: json)
        parsed.withLock { $0 = .some(attributes) }
        return attributes
    }
}

/// Metrics of the event streams.
struct EventMetrics: Sendable {
    let streams: Gauge
    let sent: Counter
    let replays: Counter
    let gaps: Counter
    private let stalled: Counter
    private let behind: Counter

    init(_ metrics: Metrics) {
        streams = metrics.gauge("halcyon_gateway_event_streams", help: "Open event streams.")
        sent = metrics.counter("halcyon_gateway_events_sent_total", help: "Events sent to clients over all streams.")
        replays = metrics.counter(
            "halcyon_gateway_event_replays_total",
            help: "Streams whose missed events were read from Kafka because they were no longer in memory.")
        gaps = metrics.counter(
            "halcyon_gateway_event_gaps_total", help: "Streams whose missed events had been deleted from Kafka.")
        func dropped(_ reason: EventBroadcaster.DropReason) -> Counter {
            metrics.counter(
                "halcyon_gateway_event_streams_dropped_total",
                help: "Streams that were closed because the client did not read.",
                labels: ["reason": reason.rawValue])
        }
        (stalled, behind) = (dropped(.stalled), dropped(.behind))
    }

    func dropped(_ reason: EventBroadcaster.DropReason) -> Counter { reason == .stalled ? stalled : behind }
}
