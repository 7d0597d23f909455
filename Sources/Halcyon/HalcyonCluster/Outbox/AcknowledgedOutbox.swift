import Kafka

/// At least once: a job ends when the brokers have acknowledged what is told of it. A worker that dies in between leaves its job to
/// another, and it is told twice, under the same event id.
public struct AcknowledgedOutbox: Outbox {
    private let producer: Producer

    /// The producer stays its maker's, who closes it.
    public init(_ producer: Producer) { self.producer = producer }

    /// Sends one record after the other, for as long as the brokers are away.
    public func settle(_ taken: TakenRecord, telling records: [ProducerRecord]) async throws(KafkaError) {
        for record in records { try await producer.sendPatiently(record) }
        taken.end()
    }

    /// Sends all records together.
    public func settle(all jobs: [(taken: TakenRecord, record: ProducerRecord)]) async -> [KafkaError?] {
        let errors = await producer.send(all: jobs.map(\.record))
        TakenRecord.end(zip(jobs, errors).filter { $0.1 == nil }.map(\.0.taken))
        return errors
    }
}
