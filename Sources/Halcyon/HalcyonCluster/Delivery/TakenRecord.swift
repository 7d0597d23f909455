import Kafka

/// A job record that a worker has taken. Whoever has it ends it or hands it back, once, and tells nobody of it before it has begun.
public struct TakenRecord: Sendable {
    /// What was in the topic.
    public let record: ConsumedRecord
    let entry: OffsetLedger.Entry
    let consumer: JobConsumer

    /// Says what to do when the job is to be handed back: it has not begun, and its partition is about to go or the worker drains.
    ///
    /// What was said last counts. `body` is called at most once, on any thread, and here and now if it has come to that already; never
    /// after ``begin()`` has said yes, until the job ``rest()``s.
    public func onRecall(_ body: @escaping @Sendable () -> Void) { consumer.onRecall(entry, body) }

    /// Asks, at the point of no return, whether the job is this worker's to do.
    /// - Returns: true when it is, and stays so: the group, or the drain, waits for it, as long as their patience lasts. False when it
    ///   is to be handed back: it was recalled, or its partition has gone.
    public func begin() -> Bool { consumer.begin(entry) }

    /// Asks for several records of one consumer at once, as ``begin()`` does for one.
    public static func begin(_ taken: [TakenRecord]) -> [Bool] { taken.first?.consumer.begin(taken.map(\.entry)) ?? [] }

    /// Ends several records of one consumer at once, as ``end()`` does for one.
    static func end(_ taken: [TakenRecord]) { taken.first?.consumer.end(taken.map(\.entry)) }

    /// The job waits to be tried again: it is as if it had not begun, and nobody waits for it to end.
    /// - Returns: false when it is to be handed back now: it was recalled, or its partition has gone.
    public func rest() -> Bool { consumer.rest(entry) }

    /// The job has ended and its event is published: its offset may be passed.
    public func end() { consumer.end(entry) }

    /// The job was not started, or not finished, and is left to whoever takes the partition next.
    public func handBack() { consumer.handBack(entry) }
}
