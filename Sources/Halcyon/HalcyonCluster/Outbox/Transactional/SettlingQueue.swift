import Kafka

/// The jobs that have ended and wait for a transaction. A pure value.
struct SettlingQueue {
    /// Those for the next transactions, in their order.
    private var waiting: [Settling] = []
    /// Those for which the commit's metadata had no room: tried again with whatever comes next.
    private var untold: [Settling] = []

    /// Bytes of one transaction's records, at most, unless a single job has more: what librdkafka's queue takes many times over.
    static let mostBytes = 64 << 20

    /// Whether there is nothing to begin a transaction for.
    var isEmpty: Bool { waiting.isEmpty }
    var hasUntold: Bool { !untold.isEmpty }
    var count: Int { waiting.count }
    /// Since when the first one waits.
    var oldest: ContinuousClock.Instant? { waiting.first?.since }

    mutating func append(_ settling: Settling) { waiting.append(settling) }

    /// Puts back what a transaction did not end.
    mutating func putBack(_ settlings: [Settling]) { waiting.insert(contentsOf: settlings, at: 0) }

    mutating func setAside(_ settlings: [Settling]) { untold += settlings }

    /// What goes together: one suspect, or all up to the first suspect, at most so many.
    mutating func next(_ most: Int) -> [Settling] {
        waiting += untold
        untold = []
        if waiting.first?.isSuspect == true { return [waiting.removeFirst()] }
        var bytes = 0
        let batch = waiting.prefix(most).prefix { settling in
            bytes += settling.bytes
            return !settling.isSuspect && (bytes <= Self.mostBytes || bytes == settling.bytes)
        }
        waiting.removeFirst(batch.count)
        return Array(batch)
    }

    /// Everything, at the end.
    mutating func removeAll() -> [Settling] {
        defer { self = SettlingQueue() }
        return waiting + untold
    }
}

/// A job that has ended and waits for its transaction.
struct Settling: Sendable {
    let taken: TakenRecord
    let records: [ProducerRecord]
    let since = ContinuousClock.now
    /// One of its records may be what a transaction failed for: it goes in a transaction of its own, and so no other job fails with it.
    var isSuspect = false
    private let answer: CheckedContinuation<KafkaError?, Never>

    init(_ taken: TakenRecord, _ records: [ProducerRecord], _ answer: CheckedContinuation<KafkaError?, Never>) {
        self.taken = taken
        self.records = records
        self.answer = answer
    }

    var entry: OffsetLedger.Entry { taken.entry }

    /// Roughly what its records take.
    var bytes: Int { records.reduce(0) { $0 + ($1.value?.count ?? 0) } }

    /// It has ended, and all know.
    func end() { answer.resume(returning: nil) }

    /// It has not ended.
    func fail(_ error: KafkaError) { answer.resume(returning: error) }

    /// Its partition has gone, and with it the job.
    func leave() {
        fail(KafkaError(code: .illegalGeneration, message: "the job's partition has gone to another worker"))
    }
}
