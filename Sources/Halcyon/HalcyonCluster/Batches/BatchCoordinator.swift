import Concurrency
import Formats
import HalcyonCoding
import HalcyonModel
import JSON
import Kafka
import Redis
import Telemetry

/// Handles the messages about batches and publishes the completion of each batch exactly once.
///
/// One worker handles the messages at a time, in their order: the owner of their partition. The completion event, the
/// message that records it, and the offset of the message that led to it are committed in one transaction, so that a
/// new owner either finds the completion in the log or handles that message again.
struct BatchCoordinator: Sendable {
    let store: BatchStore
    let batches: BatchLog
    let recounter: BatchRecounter
    let outbox: BatchOutbox
    /// Takes a message that leads to a page of a list. Returns immediately.
    let list: @Sendable (BatchLister.Request) -> Void
    /// Throws if a webhook is not permitted.
    let checkWebhook: @Sendable (Webhook) throws(JobError) -> Void
    let topics: Topics
    /// The librdkafka properties for reading.
    let reader: [String: String]
    let refusals: Refusals
    let log: Log
    let metrics: BatchMetrics
    /// The assignments whose earlier messages were handled, and the batches whose completion by this worker may not be
    /// in the log yet.
    private let known = Lock((assignments: Set<OffsetTracker.Assignment>(), completed: Set<String>()))

    /// The delay between attempts while Redis or Kafka is unavailable.
    private static let rest = Duration.milliseconds(500)

    /// Handles messages one after the other. Returns when all of them are acknowledged or returned to the queue.
    func handle(_ deliveries: [JobDelivery]) async {
        for delivery in deliveries where delivery.claimOrReturn() { await handle(delivery) }
    }

    private func handle(_ delivery: JobDelivery) async {
        let message: BatchMessage
        do throws(JSONError) {
            message = try BatchMessage(json: delivery.record.value ?? [])
        } catch {
            log.warning(
                "ignored an invalid message about a batch",
                ["offset": Int(delivery.record.offset), "reason": "\(error)"])
            return delivery.acknowledge()
        }
        while true {
            do {
                if delivery.record.partition == Topics.batchPartition {
                    try await catchUp(delivery)
                    try await handle(message, delivery)
                } else {
                    try await outbox.complete(delivery, publishingOneOf: [[topics.record(of: message)]], refusals)
                }
                return
            } catch let error as KafkaError where error.code == .illegalGeneration || error.code == .closed {
                return delivery.returnToQueue()
            } catch {
                log.debug("handling a message about a batch failed; retrying", ["error": "\(error)"])
            }
            guard delivery.releaseOrReturn() else { return }
            await Task.sleepUnlessCancelled(for: Self.rest)
            guard delivery.claimOrReturn() else { return }
        }
    }

    /// Waits until the log has this message, and everything that the previous owner of the partition has committed.
    private func catchUp(_ delivery: JobDelivery) async throws {
        await batches.waitUntilHandled(before: delivery.record.offset + 1)
        let assignment = delivery.entry.assignment
        if known.withLock({ $0.assignments.contains(assignment) }) { return }
        let reader = try await TopicReader.open(topics.batches, from: .end, properties: reader)
        await reader.close()
        await batches.waitUntilHandled(before: reader.endOffsets[Topics.batchPartition] ?? 0)
        known.withLock { known in
            known.assignments = [assignment]
            // The log tells what was completed before.
            known.completed = []
        }
    }

    private func handle(_ message: BatchMessage, _ delivery: JobDelivery) async throws {
        guard let entry = batches.entry(of: message.batch) else { return delivery.acknowledge() }
        if entry.batch.completed != nil {
            known.withLock { _ = $0.completed.remove(message.batch) }
            // The message may have been written before the completion. Redis may have lost the batch.
            try await store.open(entry.batch)
            try await store.complete(entry.batch)
            return delivery.acknowledge()
        }
        if entry.first == delivery.record.offset {
            try await store.open(entry.batch)
        }
        let (batch, isOpened) = try await store.note(entry.batch)
        let isComplete = isOpened && (batch?.created ?? .max) <= entry.batch.created + BatchStore.clockTolerance
        if !isComplete { await recounter.request(message.batch) }
        if case .list(let listing) = message.body, entry.list?.offset == delivery.record.offset,
            entry.batch.total == nil
        {
            return list(BatchLister.Request(batch: message.batch, listing: listing, delivery: delivery))
        }
        guard isComplete, var batch, batch.isDone, known.withLock({ !$0.completed.contains(batch.id) }) else {
            return delivery.acknowledge()
        }
        batch.completed = Timestamp.now.milliseconds
        batch.webhook = permittedWebhook(of: entry.batch)
        let completion = BatchMessage(batch.id, .completed(batch.counts))
        let event = BatchEvent(.completed, of: batch, at: batch.completed ?? 0)
        try await outbox.complete(
            delivery,
            publishingOneOf: [[EventPublisher.record(of: event, topics), topics.record(of: completion)]], refusals)
        known.withLock { _ = $0.completed.insert(batch.id) }
        metrics.completed.add()
        log.info(
            "batch completed",
            ["batch": batch.id, "jobs": batch.counts.ended, "failed": batch.counts.failed])
        // The message about the completion repeats this if it fails.
        try? await store.complete(batch)
    }
}

extension BatchCoordinator {
    /// The webhook of a batch, unless its producer named one that the settings do not permit.
    private func permittedWebhook(of batch: Batch) -> Webhook? {
        guard let webhook = batch.webhook else { return nil }
        do throws(JobError) {
            try checkWebhook(webhook)
            return webhook
        } catch {
            log.warning("the webhook of a batch is not permitted", ["batch": batch.id, "reason": error.message])
            return nil
        }
    }
}

/// Publishes the completions of batches in transactions, or without if the brokers have none. A worker that crashes in
/// that moment may then publish a completion again, with the same id.
final class BatchOutbox: Outbox, OffsetCommitter {
    private let transactional: TransactionalOutbox
    private let acknowledged: AcknowledgedOutbox
    private let producer: Producer
    private let hasTransactions: Lock<Bool>

    /// - Parameters:
    ///   - properties: the properties of the transactional producer, with a `transactional.id`.
    ///   - producer: the producer for brokers without transactions. The caller owns it and closes it.
    ///   - onEnd: the callback for a fatal error.
    init(
        properties: [String: String], _ producer: Producer, log: Log,
        onEnd: @escaping @Sendable (KafkaError) -> Void
    ) {
        let hasTransactions = Lock(true)
        self.hasTransactions = hasTransactions
        acknowledged = AcknowledgedOutbox(producer)
        self.producer = producer
        // The transactions of jobs have metrics with the same names.
        transactional = TransactionalOutbox(
            properties: properties, options: TransactionOptions(), events: ClientCallbacks(), log: log,
            metrics: Metrics()
        ) { error in
            guard error.code == .unsupported else { return onEnd(error) }
            hasTransactions.withLock { $0 = false }
            log.info("the brokers have no transactions; completions of batches are published at least once")
        }
    }

    /// Acquires the transactional id and starts to commit.
    func start() async { await transactional.start() }

    /// Waits until transactions can be committed, or never will.
    func ready() async { await transactional.ready() }

    /// Stops committing.
    func close() async { await transactional.close() }

    func complete(_ delivery: JobDelivery, publishing records: [ProducerRecord]) async throws(KafkaError) {
        await ready()
        if hasTransactions.withLock({ $0 }) {
            try await transactional.complete(delivery, publishing: records)
        } else {
            let errors = await producer.send(all: Array(records.dropLast()))
            if let error = errors.compactMap(\.self).first { throw error }
            // The last record leads to the next step, so it follows the others.
            try await acknowledged.complete(delivery, publishing: Array(records.suffix(1)))
        }
    }

    func commit(_ consumer: JobConsumer) async {
        if hasTransactions.withLock({ $0 }) {
            await transactional.commit(consumer)
        } else {
            await AsyncOffsetCommitter().commit(consumer)
        }
    }
}
