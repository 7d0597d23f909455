import Concurrency
import HalcyonCluster
import HalcyonCoding
import HalcyonModel
import Kafka
import TestSupport

/// A sender of jobs that adds acknowledged records to the ledger.
final class Traffic: Sendable {
    private struct State {
        var mix: JobMix
        var numbers: SeededNumbers
        /// Recent ordinary jobs, for sending duplicates.
        var recent: [DraftJob] = []
        /// The number of jobs that were passed to the producer and are not acknowledged.
        var underway = 0
        var isEnding = false
        /// The error that ended ``Traffic/run(jobs:)``.
        var failure: (any Error)?
    }

    private let producer: JobProducer
    private let ledger: Ledger
    private let topics = Topics()
    private let state: Lock<State>

    /// The number of jobs per second.
    private let rate: Int
    /// The maximum number of jobs that have not ended.
    private let most: Int

    static let partitions = 4

    init(_ producer: JobProducer, _ ledger: Ledger, _ mix: JobMix, seed: UInt64, rate: Int, most: Int) {
        self.producer = producer
        self.ledger = ledger
        self.rate = rate
        self.most = most
        state = Lock(State(mix: mix, numbers: SeededNumbers(seed: seed)))
    }

    /// Sends jobs until ``end()`` is called or the given number has been sent. Returns when all are acknowledged.
    /// - Throws: ``KafkaError`` if the brokers rejected a job.
    func run(jobs: Int = .max) async throws {
        do {
            try await sendJobs(jobs)
        } catch {
            state.withLock { $0.failure = error }
            throw error
        }
    }

    /// The error that ended ``run(jobs:)``; nil if it has not failed.
    var failure: (any Error)? { state.withLock { $0.failure } }

    private func sendJobs(_ jobs: Int) async throws {
        let start = ContinuousClock.now
        var tick = 0
        try await withThrowingDiscardingTaskGroup { group in
            var sent = 0
            while sent < jobs && !state.withLock({ $0.isEnding }) {
                tick += 1
                try await Task.sleep(until: start + .milliseconds(20 * tick), clock: .continuous)
                // The number of whole jobs in this tick, such that all ticks add up to the rate.
                for _ in 0..<min(jobs - sent, rate * tick / 50 - rate * (tick - 1) / 50) {
                    guard let job = state.withLock({ ledger.open + $0.underway < most ? Self.next(&$0) : nil }) else {
                        break
                    }
                    sent += 1
                    group.addTask { try await self.send(job.draft, job.partition) }
                }
            }
        }
    }

    /// Stops ``run(jobs:)``.
    func end() { state.withLock { $0.isEnding = true } }

    /// Sends a number of jobs of one kind at once, all to one partition.
    func burst(_ kind: JobKind, count: Int) async throws {
        let (drafts, partition) = state.withLock { state in
            state.underway += count
            let partition = Int32.random(in: 0..<Int32(Self.partitions), using: &state.numbers)
            return ((0..<count).map { _ in state.mix.next(kind) }, partition)
        }
        try await sendAll(drafts) { _ in partition }
    }

    /// Sends recent jobs again as new records, like a producer that missed an acknowledgement.
    func sendAgain(count: Int) async throws {
        let drafts = state.withLock { state in
            let drafts = Array(state.recent.suffix(count))
            state.underway += drafts.count
            return drafts
        }
        try await sendAll(drafts) { Int32($0 % Self.partitions) }
    }

    private func sendAll(_ drafts: [DraftJob], to partition: @Sendable @escaping (Int) -> Int32) async throws {
        try await withThrowingDiscardingTaskGroup { group in
            for (number, draft) in drafts.enumerated() {
                group.addTask { try await self.send(draft, partition(number)) }
            }
        }
    }

    private static func next(_ state: inout State) -> (draft: DraftJob, partition: Int32) {
        let draft = state.mix.next()
        if draft.kind == .ordinary { state.recent = state.recent.suffix(99) + [draft] }
        state.underway += 1
        return (draft, Int32.random(in: 0..<Int32(partitions), using: &state.numbers))
    }

    /// Sends a single job.
    func sendOne(_ draft: DraftJob, to partition: Int32) async throws {
        state.withLock { $0.underway += 1 }
        try await send(draft, partition)
    }

    /// Sends a job that is already counted in `underway`.
    private func send(_ draft: DraftJob, _ partition: Int32) async throws {
        let at = ledger.now
        let topic = topics.jobs(draft.lane)
        defer { state.withLock { $0.underway -= 1 } }
        let delivery = try await producer.send(
            ProducerRecord(topic: topic, partition: partition, value: Array(draft.json.utf8)))
        ledger.add(
            SentJob(
                id: draft.id, place: "\(topic)-\(delivery.partition)-\(delivery.offset)", kind: draft.kind.rawValue,
                allowed: draft.allowed, source: draft.source, outputs: draft.outputs,
                requiresStore: draft.requiresStore,
                slot: draft.slot, generation: draft.generation, notBefore: draft.notBefore, batch: draft.batch, at: at))
        if let batch = draft.batch, batch.index == JobMix.jobsPerBatch - 1 {
            try await close(batch.batch, total: JobMix.jobsPerBatch)
        }
        guard draft.isCancelled else { return }
        let patience = state.withLock { Int.random(in: 0..<300, using: &$0.numbers) }
        try await Task.sleep(for: .milliseconds(patience))
        try await cancel(draft.id)
    }

    /// Closes the batches of which not all jobs were drawn. Later jobs belong to other batches.
    func closeBatches() async throws {
        state.withLock { $0.mix.beginBatch() }
        let batches = Dictionary(grouping: ledger.sent.compactMap(\.batch), by: \.batch)
        for (batch, jobs) in batches {
            let total = Set(jobs.map(\.index)).count
            if total < JobMix.jobsPerBatch { try await close(batch, total: total) }
        }
    }

    private func close(_ batch: String, total: Int) async throws {
        let record = topics.record(of: BatchMessage(batch, .close(total: total)))
        _ = try await producer.send(record)
    }

    /// Cancels the jobs with this id.
    func cancel(_ id: String) async throws {
        try await producer.attempt { [topics] producer throws(KafkaError) in
            try await ControlPublisher(producer, topics: topics).publish(.cancel(.job(id)))
        }
    }
}
