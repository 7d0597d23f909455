import Concurrency
import HalcyonCluster
import Kafka
import Telemetry

/// Somebody who takes jobs and does with each what a test says. What is written in a record is its job's name.
final class Hands: Sendable {
    /// What is done with a job.
    enum Way: Sendable {
        /// It begins and ends.
        case endsAtOnce
        /// It begins, and ends with ``finish()``.
        case isBegun
        /// It waits until ``finishAll()``, and is handed back when it is recalled.
        case waits
    }

    private struct State {
        var taken: [String] = []
        var ended: [String] = []
        var begun: [JobDelivery] = []
        var waiting: [JobDelivery] = []
        var revoked: [String] = []
        var begunThoughRecalled = 0
    }

    private let state = Lock(State())
    private let way: @Sendable (String) -> Way

    init(_ way: @escaping @Sendable (String) -> Way) { self.way = way }

    var taken: [String] { state.withLock { $0.taken } }
    var ended: [String] { state.withLock { $0.ended } }
    var begun: [String] { state.withLock { $0.begun.map(\.name) } }
    var revoked: [String] { state.withLock { $0.revoked } }
    /// Jobs that waited and were let begin after they were recalled.
    var begunThoughRecalled: Int { state.withLock { $0.begunThoughRecalled } }

    /// A consumer that gives its jobs to these hands.
    func consumer(_ options: JobConsumer.Options, log: Log = .silent, metrics: Metrics = Metrics()) -> JobConsumer {
        JobConsumer(options: options, log: log, metrics: metrics) { for record in $0 { self.receive(record) } }
    }

    private func receive(_ job: JobDelivery) {
        let name = job.name
        state.withLock { $0.taken.append(name) }
        switch way(name) {
        case .endsAtOnce: if job.claim() { end(job) } else { job.returnToQueue() }
        case .isBegun:
            if job.claim() { state.withLock { $0.begun.append(job) } } else { job.returnToQueue() }
        case .waits:
            state.withLock { $0.waiting.append(job) }
            job.onRevocation { [self] in
                let begins = job.claim()
                state.withLock { state in
                    state.revoked.append(name)
                    if begins { state.begunThoughRecalled += 1 }
                }
                job.returnToQueue()
            }
        }
    }

    /// Ends what was begun.
    func finish() {
        let jobs = state.withLock { state in
            defer { state.begun = [] }
            return state.begun
        }
        for job in jobs { end(job) }
    }

    /// Ends what was begun, and begins and ends what waits and was not recalled.
    func finishAll() {
        finish()
        let jobs = state.withLock { state in
            defer { state.waiting = [] }
            return state.waiting
        }
        for job in jobs where job.claim() { end(job) }
    }

    private func end(_ job: JobDelivery) {
        state.withLock { $0.ended.append(job.name) }
        job.acknowledge()
    }
}

extension JobDelivery {
    fileprivate var name: String { String(decoding: record.value ?? [], as: UTF8.self) }
}
