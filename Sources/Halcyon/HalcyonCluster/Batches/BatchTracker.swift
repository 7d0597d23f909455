import Concurrency
import Formats
import HalcyonModel
import Kafka
import Redis
import Telemetry

/// Tracks batches: counts the ends of their jobs, and publishes their progress and completion.
///
/// Counts are kept in Redis and can be rebuilt from the topic of events. The trackers of all workers form a consumer
/// group of the topic of messages about batches. docs/batches.md explains why each batch completes exactly once. After
/// a fatal error a tracker leaves the group, so that another one takes over, and continues to count. The owner must
/// call ``shutdown(gracePeriod:)`` at the end.
public final class BatchTracker: Sendable {
    private let consumer: JobConsumer
    private let outbox: BatchOutbox
    private let recounter: BatchRecounter
    private let counter: BatchCounter
    private let counting: Task<Void, Never>
    private let messageQueue: AsyncStream<[JobDelivery]>.Continuation
    private let listQueue: AsyncStream<BatchLister.Request>.Continuation
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
    ///   - redis: the client for counts. The caller owns it and closes it after the tracker.
    ///   - producer: the producer of messages and progress events. The caller owns it and closes it after the tracker.
    ///   - batches: the log of batches, which the caller closes after the tracker.
    ///   - lists: the lists from which batches are made.
    ///   - log: the log.
    ///   - metrics: the metrics of the process.
    public init(
        _ options: BatchOptions, topics: Topics, kafka: KafkaProperties, group: String, consumer: JobConsumer.Options,
        _ redis: RedisClient, _ producer: Producer, batches: BatchLog, lists: BatchLists, log: Log,
        metrics: Metrics
    ) {
        self.topics = topics
        let group = "\(group)-batches"
        properties = kafka.notifier(group: group)
        let (ends, end) = AsyncStream<KafkaError>.makeStream()
        let onEnd: @Sendable (KafkaError) -> Void = { end.yield($0) }
        outbox = BatchOutbox(
            properties: kafka.transactions(group: group, instance: nil), producer, log: log, onEnd: onEnd)
        let batchMetrics = BatchMetrics(metrics)
        counter = BatchCounter(
            BatchStore(redis, options), producer, topics, options, log: log, metrics: batchMetrics)
        recounter = BatchRecounter(counter, batches, properties: kafka.reader, log: log)
        let refusals = Refusals(log: log)
        let (requests, listQueue) = AsyncStream<BatchLister.Request>.makeStream()
        self.listQueue = listQueue
        let lister = BatchLister(
            lists: lists, batches: batches, options: options, producer: producer, outbox: outbox, topics: topics,
            permits: PrioritySemaphore(options.lists), refusals: refusals, log: log)
        let coordinator = BatchCoordinator(
            store: counter.store, batches: batches, recounter: recounter, outbox: outbox,
            list: { listQueue.yield($0) }, checkWebhook: lists.reader.checkWebhook, topics: topics,
            reader: kafka.reader, refusals: refusals, log: log,
            metrics: batchMetrics)
        let (messages, messageQueue) = AsyncStream<[JobDelivery]>.makeStream()
        self.messageQueue = messageQueue
        self.consumer = JobConsumer(
            options: consumer, of: "batches", commits: outbox, log: log, metrics: metrics, onEnd: onEnd
        ) { deliveries in
            messageQueue.yield(deliveries)
        }
        let audit = BatchAudit(
            counter: counter, batches: batches, recounter: recounter, recountAfter: options.recountAfter)
        counting = Task { [counter] in await counter.run() }
        tasks = [
            Task { for await deliveries in messages { await coordinator.handle(deliveries) } },
            Task { await lister.run(requests) },
            Task { [consumer = self.consumer] in
                await audit.run { consumer.owns(TopicPartition(topics.batches, Topics.batchPartition)) }
            },
            Task { [consumer = self.consumer] in
                for await error in ends {
                    log.error(
                        "batches are no longer tracked by this worker; leaving them to other workers",
                        ["reason": "\(error)", "mend": error.batchRemedy(group)])
                    // A consumer can leave the group only after it has joined.
                    await consumer.waitForAssignment()
                    _ = await consumer.shutdown(gracePeriod: .zero)
                }
            },
        ]
    }

    /// Counts the end of a job of a batch soon. Does not wait.
    public func ended(_ end: BatchEnd) { counter.add(end) }

    /// Joins the group.
    /// - Throws: ``KafkaError`` that names a property which librdkafka rejects.
    public func start() async throws(KafkaError) {
        await outbox.start()
        try await consumer.start(
            topics: [topics.batches], properties: properties, events: ClientCallbacks())
    }

    /// Waits until the group has assigned partitions for the first time.
    public func ready() async {
        await outbox.ready()
        await consumer.waitForAssignment()
    }

    /// Stops receiving, finishes what has begun within `grace`, commits, and leaves the group.
    public func shutdown(gracePeriod grace: Duration) async {
        _ = await consumer.shutdown(gracePeriod: grace)
        counter.finish()
        await withTimeout(grace) { [counting] in await counting.value }
        counting.cancel()
        messageQueue.finish()
        listQueue.finish()
        for task in tasks { task.cancel() }
        await recounter.close()
        await outbox.close()
        for task in tasks { await task.value }
    }
}

extension KafkaError {
    /// The action of the operator after a fatal error of a tracker.
    /// - Parameter group: the consumer group of the trackers.
    fileprivate func batchRemedy(_ group: String) -> String {
        switch code {
        case .transactionsNotAllowed:
            "grant WRITE and DESCRIBE on transactional ids with the prefix \(group), and restart the worker"
        case .invalidTransactionTimeout:
            "set transaction.timeout.ms in kafka.properties to at most transaction.max.timeout.ms of the brokers"
        default: "correct kafka.properties if the reason names a property, and restart the worker"
        }
    }
}
