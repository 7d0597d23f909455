import Kafka

/// A job record that a worker has taken. Whoever has it ends it or hands it back, once.
public struct TakenRecord: Sendable {
    /// What was in the topic.
    public let record: ConsumedRecord
    let entry: OffsetLedger.Entry
    let consumer: JobConsumer

    /// Whether the job is still this worker's to start: its partition has not moved, and the worker is not draining.
    public var isWanted: Bool { consumer.isCurrent(entry) }

    /// The job has ended and its event is published: its offset may be passed.
    public func end() { consumer.end(entry) }

    /// The job was not started, or not finished, and is left to whoever takes the partition next.
    public func handBack() { consumer.handBack(entry) }
}
