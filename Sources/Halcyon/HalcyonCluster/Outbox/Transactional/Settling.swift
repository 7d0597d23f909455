import Kafka

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
