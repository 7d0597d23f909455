import Formats
import HalcyonCluster
import HalcyonModel
import HalcyonWire
import JSON
import Kafka
import Telemetry
import Threads

/// Follows the events of the cluster, by one reader of committed records for the whole gateway, and hands them to whoever waits for the end
/// of a job or follows by a stream.
///
/// Brokers that are away are waited for, and so is a topic that is not there. A reader that fails for good is opened again where it had
/// come to. ``close()`` must be called in the end.
final class EventFeed: Sendable {
    let options: EventOptions
    let hub: EventHub
    let topic: String
    /// librdkafka's, for reading what was committed.
    let properties: [String: String]
    let log: Log
    let metrics: EventMetrics
    /// Told what was purged; nil for what this version does not know.
    private let onPurge: @Sendable (Purged.Target?) -> Void
    let waiters = EndWaiters()
    /// Streams that are read what they have missed.
    let replays: Slots
    private let caughtUp = Gate()
    private let connection = Lock((isOpen: false, isLost: false))
    private let reader = Lock<TopicReader?>(nil)
    private let tasks = Lock<[Task<Void, Never>]>([])
    /// One token while there is something to announce.
    private let news = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

    private init(
        _ options: EventOptions, _ topic: String, _ properties: [String: String], _ log: Log, _ metrics: Metrics,
        _ onPurge: @escaping @Sendable (Purged.Target?) -> Void
    ) {
        self.onPurge = onPurge
        self.options = options
        self.topic = topic
        // Whatever the operator set: nobody hears of what its transaction took back.
        self.properties = properties.merging(["isolation.level": "read_committed"]) { $1 }
        self.log = log
        self.metrics = EventMetrics(metrics)
        hub = EventHub(options)
        replays = Slots(options.replays)
    }

    /// Begins to follow, in the background.
    /// - Parameters:
    ///   - properties: librdkafka's, for reading.
    ///   - onPurge: told what was purged; nil for what this version does not know.
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

    /// Returns when it follows: whatever is written from now on is seen. Or when the task is cancelled, or the feed closed.
    func ready() async { await caughtUp.wait() }

    /// Whether it follows at this moment; not while the brokers are away.
    var isFollowing: Bool {
        caughtUp.isOpen && connection.withLock { $0.isOpen && !$0.isLost }
    }

    /// Waits for the end of a job. It is seen if it comes after this has returned, and after ``ready()``.
    func wait(for jobID: String) -> EndWaiter { waiters.add(jobID) }

    /// Ends all streams, in a way that has their clients come back. Waiters still learn of ends.
    func endStreams() { hub.end() }

    /// Follows no more, and tells all who wait.
    func close() async {
        hub.end()
        news.continuation.finish()
        let tasks = tasks.withLock { $0 }
        for task in tasks { task.cancel() }
        for task in tasks { await task.value }
        waiters.close()
        caughtUp.open()
    }

    // MARK: Reading

    private func read() async {
        var cursor: TopicCursor?
        var isTold = false
        while !Task.isCancelled {
            do throws(KafkaError) {
                let reader = try await open(cursor)
                if isTold { log.notice("events are followed again") }
                isTold = false
                connection.withLock { $0 = (true, false) }
                self.reader.withLock { $0 = reader }
                let failure = await follow(reader, &cursor)
                connection.withLock { $0.isOpen = false }
                await reader.close()
                if let failure { throw failure }
            } catch {
                if !isTold { log.warning("events are not followed; waiting for their topic", ["error": "\(error)"]) }
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
            events: ClientEvents(
                log: ClientEvents.telling(log).log,
                connection: { [connection] told in connection.withLock { $0.isLost = told == .lost } }))
    }

    /// Hands over what comes, until the task is cancelled.
    private func follow(_ reader: TopicReader, _ cursor: inout TopicCursor?) async -> KafkaError? {
        var here = cursor ?? TopicCursor(reader.startOffsets)
        // What was there before is kept for who comes back, and is news to nobody.
        var past = hub.cursor == nil ? EventRing(limit: options.ringBytes, at: here) : nil
        let present = TopicCursor(reader.endOffsets)
        do throws(KafkaError) {
            while true {
                if let ring = past, here.hasReached(present) {
                    hub.begin(ring)
                    past = nil
                    caughtUp.open()
                }
                guard let batch = try await reader.nextBatch() else { return nil }
                var records: [FeedRecord] = []
                for record in batch.records {
                    here.pass(record.partition, record.offset)
                    guard let json = record.value else { continue }
                    records.append(FeedRecord(record, json, here))
                    if record.offset >= present[record.partition] || past == nil {
                        take(record.key, json)
                    }
                }
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
            // What was read for the past alone is read again.
            if past != nil { cursor = nil }
            return error
        }
    }

    /// Tells those who wait for what this event says.
    private func take(_ key: [UInt8]?, _ json: [UInt8]) {
        if let key { return waiters.take(key: key, json: json) }
        // About no job, and so seldom that it may be parsed at once.
        if let event = EventView(json: json), event.type == Event.Kind.purged.rawValue { onPurge(event.purged) }
    }

    /// A reader sees the partitions that were there when it was opened: where there are more now, it is opened again.
    private func lookForPartitions() async {
        let admin: Admin
        do {
            admin = try Admin(properties: properties)
        } catch {
            return log.error("new partitions of the topic of events are not seen", ["error": "\(error)"])
        }
        while !Task.isCancelled {
            await Task.sleepUnlessCancelled(for: options.partitionInterval)
            // Without an answer it is asked again after the interval.
            guard let reader = reader.withLock({ $0 }), let metadata = try? await admin.metadata(within: .seconds(2)),
                let partitions = metadata.topics[topic], partitions.count > reader.startOffsets.count
            else { continue }
            log.notice("the topic of events has more partitions", ["partitions": partitions.count])
            // Where it had come to is kept; new ones are read from their beginning.
            await reader.close()
        }
        await admin.close()
    }

    // MARK: Handing over

    /// Wakes subscribers, the less often the more there are: each then takes more at once, and all of them no more than a part of the
    /// machine.
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

/// An event as it goes to all who follow: its frame of the event stream is made once for all of them, and it is parsed once at most.
final class FeedRecord: Sendable {
    /// What filters ask for.
    struct Facts: Sendable {
        /// Behind the prefix `halcyon.image.`.
        let type: String
        /// The source.
        let subject: String?
        /// nil for an event that is about no job.
        let jobID: String?

        /// As CloudEvents has it.
        var fullType: String { Event.typePrefix + type }
    }

    let partition: Int32
    let offset: Int64
    /// How far the feed has come with it.
    let cursor: TopicCursor
    /// With the feed's own cursor as its id.
    let frame: [UInt8]
    /// Where its JSON stands in that.
    private let jsonStart: Int
    private let parsed = Lock<Facts??>(nil)

    /// - Parameters:
    ///   - json: the record's value.
    ///   - cursor: behind it.
    init(_ record: ConsumedRecord, _ json: [UInt8], _ cursor: TopicCursor) {
        (partition, offset) = (record.partition, record.offset)
        self.cursor = cursor
        let head = ServerSentEvents.id(cursor) + ServerSentEvents.dataName
        jsonStart = head.count
        frame = head + json.onOneLine + ServerSentEvents.end
    }

    /// The event.
    var json: [UInt8] { Array(frame[jsonStart..<frame.count - ServerSentEvents.end.count]) }

    /// What it costs in memory, about.
    var bytes: Int { frame.count + cursor.next.count * 8 + 256 }

    /// The frame for who has come so far with it.
    func frame(at cursor: TopicCursor) -> [UInt8] {
        cursor == self.cursor
            ? frame : ServerSentEvents.id(cursor) + frame[(jsonStart - ServerSentEvents.dataName.count)...]
    }

    /// nil for what is no event of Halcyon.
    var facts: Facts? {
        if let known = parsed.withLock({ $0 }) { return known }
        // Two may parse at once, and find the same.
        let facts = EventView(json: json).map { Facts(type: $0.type, subject: $0.subject, jobID: $0.jobID) }
        parsed.withLock { $0 = .some(facts) }
        return facts
    }
}

/// What a gateway counts of its event streams.
struct EventMetrics: Sendable {
    let streams: Gauge
    let sent: Counter
    let replays: Counter
    let gaps: Counter
    private let stalled: Counter
    private let behind: Counter

    init(_ metrics: Metrics) {
        streams = metrics.gauge("halcyon_gateway_event_streams", help: "Event streams that are open.")
        sent = metrics.counter("halcyon_gateway_events_sent_total", help: "Events sent to clients, of all streams.")
        replays = metrics.counter(
            "halcyon_gateway_event_replays_total",
            help: "Streams that were read from Kafka what they had missed, since it was not in memory any more.")
        gaps = metrics.counter(
            "halcyon_gateway_event_gaps_total", help: "Streams whose missed events the broker had deleted.")
        func dropped(_ reason: EventHub.DropReason) -> Counter {
            metrics.counter(
                "halcyon_gateway_event_streams_dropped_total",
                help: "Streams that were ended since the client did not read.",
                labels: ["reason": reason.rawValue])
        }
        (stalled, behind) = (dropped(.stalled), dropped(.behind))
    }

    func dropped(_ reason: EventHub.DropReason) -> Counter { reason == .stalled ? stalled : behind }
}
