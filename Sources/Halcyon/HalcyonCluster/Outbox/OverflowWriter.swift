import Formats
import HalcyonModel
import Kafka
import Telemetry

/// Moves jobs of flows that flood a partition to the overflow topic, so that later records of the partition can be
/// received. Workers process them with the priority of their lane.
public struct OverflowWriter: Sendable {
    private let outbox: any Outbox
    private let topics: Topics
    private let log: Log
    private let moved: Counter
    private let fail: @Sendable ([JobDelivery]) -> Void

    /// Creates a writer.
    /// - Parameters:
    ///   - outbox: The outbox of the consumer.
    ///   - fail: The receiver of jobs that cannot be moved. It processes them.
    public init(
        _ outbox: any Outbox, topics: Topics, log: Log, metrics: Metrics,
        fail: @escaping @Sendable ([JobDelivery]) -> Void
    ) {
        self.outbox = outbox
        self.topics = topics
        self.log = log
        self.fail = fail
        moved = metrics.counter(
            "halcyon_overflow_total", help: "Jobs moved to the overflow topic, out of the way of others.")
    }

    /// Moves jobs of one consumer.
    public func move(_ deliveries: [JobDelivery]) async {
        var jobs: [(delivery: JobDelivery, record: ProducerRecord)] = []
        let now = Timestamp.now.milliseconds
        for (delivery, isOurs) in zip(deliveries, JobDelivery.claim(deliveries)) {
            guard isOurs else {
                delivery.returnToQueue()
                continue
            }
            let message = RetryMessage(
                provenance: OriginalRecord(delivery.record), history: AttemptHistory(began: now), due: now,
                hasStarted: false)
            jobs.append((delivery, message.record(of: delivery.record, to: topics.overflow)))
        }
        let errors = await outbox.complete(all: jobs)
        let failed = zip(jobs, errors).filter { $0.1 != nil }.map(\.0.delivery)
        moved.add(jobs.count - failed.count)
        guard !failed.isEmpty else { return }
        log.warning(
            "jobs not moved to the overflow topic",
            ["topic": topics.overflow, "jobs": failed.count, "error": errors.lazy.compactMap(\.self).first?.message])
        fail(failed)
    }
}
