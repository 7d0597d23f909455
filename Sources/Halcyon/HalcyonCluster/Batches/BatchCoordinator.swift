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
    let admin: Admin
    let topics: Topics
    let refusals: Refusals
    let log: Log
    let metrics: BatchMetrics
    /// The assignments whose earlier messages were handled, and the batches that this worker has completed.
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
        let partition = delivery.record.topicPartition
        let end = try await admin.watermarks(of: [partition])[partition]?.upperBound ?? 0
        await batches.waitUntilHandled(before: end)
        known.withLock { known in
            known.assignments = [assignment]
            // The log tells what was completed before.
            known.completed = []
        }
    }

    private func handle(_ message: BatchMessage, _ delivery: JobDelivery) async throws {
        guard let entry = batches.entry(of: message.batch) else { return delivery.acknowledge() }
        if entry.batch.completed != nil {
            // The message may have been written before the completion, whose record in Redis may be lost.
            try await store.complete(entry.batch)
            return delivery.acknowledge()
        }
        if entry.first == delivery.record.offset {
            _ = try await store.open(entry.batch)
        }
        let (batch, isOpened) = try await store.note(
            message.batch, total: entry.batch.total, cancelled: entry.batch.cancelled)
        let isComplete = (batch?.created ?? .max) <= entry.batch.created + 600_000
        if !isOpened || !isComplete {
            await recounter.request(message.batch)
            return delivery.acknowledge()
        }
        guard var batch, batch.isDone, known.withLock({ !$0.completed.contains(batch.id) }) else {
            return delivery.acknowledge()
        }
        batch.completed = Timestamp.now.milliseconds
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
