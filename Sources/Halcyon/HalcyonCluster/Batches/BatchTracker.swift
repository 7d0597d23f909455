import Concurrency
import Formats
import HalcyonModel
import Kafka
import Redis
import Telemetry

/// Tracks batches: counts the ends of their jobs, and publishes their progress and completion.
///
/// The trackers of all workers share the partitions of the topics of events and of messages about batches, in a
/// consumer group of their own. Counts are kept in Redis and derived from the events, so that they can be rebuilt.
/// docs/batches.md explains why each batch completes exactly once. The owner must call ``shutdown(gracePeriod:)`` at
/// the end.
public final class BatchTracker: Sendable {
    private let consumer: JobConsumer
    private let outbox: BatchOutbox
    private let producer: Producer
    private let admin: Admin
    private let redis: RedisClient
    private let recounter: BatchRecounter
    private let log: BatchLog
    private let queues: [AsyncStream<[JobDelivery]>.Continuation]
    private let tasks: [Task<Void, Never>]
    private let topics: Topics
    private let properties: [String: String]

    /// Creates a tracker, which starts with ``start()``.
    /// - Parameters:
    ///   - options: the options of batches.
    ///   - topics: the cluster's topics.
    ///   - kafka: the properties of the Kafka clients.
    ///   - group: the consumer group of the workers. That of the trackers is named after it.
    ///   - consumer: the limits of the consumer and its commit settings.
    ///   - endpoint: the Redis servers.
    ///   - batches: the log of batches, which the caller closes after the tracker.
    ///   - log: the log.
    ///   - metrics: the metrics of the process.
    ///   - onEnd: the callback for a fatal error.
    /// - Throws: ``KafkaError`` that names a property which librdkafka rejects.
    public init(
        _ options: BatchOptions, topics: Topics, kafka: KafkaProperties, group: String, consumer: JobConsumer.Options,
        redis endpoint: RedisEndpoint, batches: BatchLog, log: Log, metrics: Metrics,
        onEnd: @escaping @Sendable (KafkaError) -> Void
    ) throws(KafkaError) {
        self.topics = topics
        self.log = batches
        let group = "\(group)-batches"
        properties = kafka.bookkeeper(group: group)
        redis = RedisClient(endpoint)
        producer = try Producer(properties: kafka.producer)
        admin = try Admin(properties: kafka.admin)
        outbox = BatchOutbox(
            properties: kafka.transactions(group: group, instance: nil), producer, log: log, onEnd: onEnd)
        let batchMetrics = BatchMetrics(metrics)
        let counter = BatchCounter(
            store: BatchStore(redis, options), producer: producer, topics: topics, options: options, log: log,
            metrics: batchMetrics)
        recounter = BatchRecounter(counter, batches, properties: kafka.reader, log: log)
        let coordinator = BatchCoordinator(
            store: counter.store, batches: batches, recounter: recounter, outbox: outbox, admin: admin, topics: topics,
            refusals: Refusals(log: log), log: log, metrics: batchMetrics)
        let (ends, endQueue) = AsyncStream<[JobDelivery]>.makeStream()
        let (messages, messageQueue) = AsyncStream<[JobDelivery]>.makeStream()
        queues = [endQueue, messageQueue]
        self.consumer = JobConsumer(
            options: consumer, of: "batches", commits: outbox, log: log, metrics: metrics, onEnd: onEnd
        ) { deliveries in
            // The records of one call are of one partition.
            let isEvents = deliveries.first?.record.topic == topics.events
            (isEvents ? endQueue : messageQueue).yield(deliveries)
        }
        let audit = BatchAudit(store: counter.store, batches: batches, recounter: recounter, options: options)
        tasks = [
            Task { for await deliveries in ends { await counter.count(deliveries) } },
            Task { for await deliveries in messages { await coordinator.handle(deliveries) } },
            Task { await audit.run() },
        ]
    }

    /// Joins the group.
    /// - Throws: ``KafkaError`` that names a property which librdkafka rejects.
    public func start() async throws(KafkaError) {
        await outbox.start()
        try await consumer.start(
            topics: [topics.events, topics.batches], properties: properties, events: ClientCallbacks())
    }

    /// Waits until the group has assigned partitions for the first time.
    public func ready() async {
        await outbox.ready()
        await consumer.waitForAssignment()
    }

    /// Stops receiving, finishes what has begun within `grace`, commits, leaves the group, and closes all connections.
    public func shutdown(gracePeriod grace: Duration) async {
        _ = await consumer.shutdown(gracePeriod: grace)
        for queue in queues { queue.finish() }
        for task in tasks { task.cancel() }
        await recounter.close()
        await outbox.close()
        for task in tasks { await task.value }
        await producer.close(flushingFor: min(grace, .seconds(5)))
        await admin.close()
        await redis.close()
    }
}

/// Finds batches whose counts are incomplete although no message tells so, for example because Redis has lost the last
/// second of its writes in a failover.
struct BatchAudit: Sendable {
    let store: BatchStore
    let batches: BatchLog
    let recounter: BatchRecounter
    let options: BatchOptions

    /// Checks all batches periodically until the task is cancelled.
    func run() async {
        /// The time after which a batch is counted again, and its number of ended jobs at the time of the last check.
        var checks: [String: (ended: Int, since: ContinuousClock.Instant, patience: Duration)] = [:]
        while !Task.isCancelled {
            await Task.sleepUnlessCancelled(for: options.recountAfter / 4)
            var next: [String: (ended: Int, since: ContinuousClock.Instant, patience: Duration)] = [:]
            for entry in batches.incomplete() where !Task.isCancelled {
                let id = entry.batch.id
                // If Redis is unavailable, nothing can be counted either.
                guard let (batch, isOpened) = try? await store.note(id) else { continue }
                let ended = batch?.counts.ended ?? 0
                var check = checks[id] ?? (ended, .now, options.recountAfter)
                if check.ended != ended { check = (ended, .now, options.recountAfter) }
                if check.since.duration(to: .now) >= (isOpened ? check.patience : options.recountAfter),
                    await store.lockAudit(of: id, for: check.patience)
                {
                    await recounter.request(id)
                    check = (ended, .now, min(check.patience * 2, .seconds(3600)))
                }
                next[id] = check
            }
            checks = next
        }
    }
}
