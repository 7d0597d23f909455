import Kafka

/// A job record that a worker has taken. Whoever has it ends it or hands it back, once.
public struct TakenRecord: Sendable {
    /// What was in the topic.
    public let record: ConsumedRecord
    let entry: OffsetLedger.Entry
    let consumer: JobConsumer

    /// Asks, at the point of no return, whether the job is still this worker's to do; if not, it is to be handed back: its partition
    /// has moved or is about to, or the worker is leaving.
    public func begin() -> Bool { consumer.begin(entry) }

    /// The job has ended and its event is published: its offset may be passed.
    public func end() { consumer.end(entry) }

    /// The job was not started, or not finished, and is left to whoever takes the partition next.
    public func handBack() { consumer.handBack(entry) }
}
