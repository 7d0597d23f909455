import Kafka

/// The jobs that have ended and wait for a transaction. A pure value.
struct PendingCompletionQueue {
    /// The jobs for the next transactions, in their order.
    private var waiting: [PendingCompletion] = []
    /// The jobs that did not fit into commit metadata. They are retried with the next transaction.
    private var untracked: [PendingCompletion] = []

    /// The maximum number of bytes in the records of one transaction, unless a single job has more. The queue of
    /// librdkafka holds many times that.
    static let mostBytes = 64 << 20

    /// True if no job waits for the next transaction.
    var isEmpty: Bool { waiting.isEmpty }
    var hasUntracked: Bool { !untracked.isEmpty }
    var count: Int { waiting.count }
    /// The time since which the first job waits.
    var oldest: ContinuousClock.Instant? { waiting.first?.since }

    mutating func append(_ completion: PendingCompletion) { waiting.append(completion) }

    /// Returns jobs to the queue that a transaction did not end.
    mutating func putBack(_ completions: [PendingCompletion]) { waiting.insert(contentsOf: completions, at: 0) }

    mutating func setAside(_ completions: [PendingCompletion]) { untracked += completions }

    /// Removes the jobs of the next transaction: a single suspect, or up to `most` jobs before the first suspect.
    mutating func next(_ most: Int) -> [PendingCompletion] {
        waiting += untracked
        untracked = []
        if waiting.first?.isSuspect == true { return [waiting.removeFirst()] }
        var bytes = 0
        let batch = waiting.prefix(most).prefix { completion in
            bytes += completion.bytes
            return !completion.isSuspect && (bytes <= Self.mostBytes || bytes == completion.bytes)
        }
        waiting.removeFirst(batch.count)
        return Array(batch)
    }

    /// Removes all jobs.
    mutating func removeAll() -> [PendingCompletion] {
        defer { self = PendingCompletionQueue() }
        return waiting + untracked
    }
}

/// A job that has ended and waits for its transaction.
struct PendingCompletion: Sendable {
    let delivery: JobDelivery
    let records: [ProducerRecord]
    let since = ContinuousClock.now
    /// True if one of its records may have caused a transaction to fail. It then gets its own transaction, so that no
    /// other job fails with it.
    var isSuspect = false
    private let answer: CheckedContinuation<KafkaError?, Never>

    init(_ delivery: JobDelivery, _ records: [ProducerRecord], _ answer: CheckedContinuation<KafkaError?, Never>) {
        self.delivery = delivery
        self.records = records
        self.answer = answer
    }

    var entry: OffsetTracker.Entry { delivery.entry }

    /// The approximate size of its records.
    var bytes: Int { records.reduce(0) { $0 + ($1.value?.count ?? 0) } }

    /// Reports that the job has ended.
    func end() { answer.resume(returning: nil) }

    /// Reports that the job has not ended.
    func fail(_ error: KafkaError) { answer.resume(returning: error) }

    /// Reports that the job's partition was revoked.
    func leave() {
        fail(KafkaError(code: .illegalGeneration, message: "the job's partition was revoked"))
    }
}
