import Concurrency
import Kafka
import Telemetry

/// Publishes the completions of batches in transactions, or without if the brokers have none. A worker that crashes in
/// that moment may then publish a completion again, with the same id.
final class BatchOutbox: Outbox, OffsetCommitter {
    private let transactional: TransactionalOutbox
    private let acknowledged: AcknowledgedOutbox
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
            try await acknowledged.complete(delivery, publishing: records)
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
