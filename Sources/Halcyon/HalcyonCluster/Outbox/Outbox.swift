import Kafka

/// Where a job ends: what is told of it goes to Kafka, and then its offset may be passed.
public protocol Outbox: Sendable {
    /// Tells all of `records` and ends `taken`, which has begun. Returns when both are sure.
    /// - Throws: ``KafkaError`` when nothing was told and waiting cannot help: a record is too large
    ///   (``KafkaError/Code/messageTooLarge``), the job's partition has gone, and with it the job to another worker
    ///   (``KafkaError/Code/illegalGeneration``), or the worker's connection is closed. The job has not ended then.
    func settle(_ taken: TakenRecord, telling records: [ProducerRecord]) async throws(KafkaError)
}
