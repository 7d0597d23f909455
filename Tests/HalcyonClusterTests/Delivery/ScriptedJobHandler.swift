import Concurrency
import HalcyonCluster
import Kafka
import Telemetry

/// A handler of jobs that treats each as a test specifies. The value of a record is the name of its job.
final class ScriptedJobHandler: Sendable {
    /// The treatment of a job.
    enum Behavior: Sendable {
        /// It starts and completes at once.
        case completes
        /// It starts at once, and completes with ``completeStarted()``.
        case starts
        /// It waits until ``completeAll()``, and is returned to the queue when it is revoked.
        case waits
    }

    private struct State {
        var received: [String] = []
        var completed: [String] = []
        var started: [JobDelivery] = []
        var waiting: [JobDelivery] = []
        var revoked: [String] = []
        var startedAfterRevocation = 0
    }

    private let state = Lock(State())
    private let behavior: @Sendable (String) -> Behavior

    init(_ behavior: @escaping @Sendable (String) -> Behavior) { self.behavior = behavior }

    var received: [String] { state.withLock { $0.received } }
    var completed: [String] { state.withLock { $0.completed } }
    var started: [String] { state.withLock { $0.started.map(\.name) } }
    var revoked: [String] { state.withLock { $0.revoked } }
    /// The number of waiting jobs that could start after they were revoked.
    var startedAfterRevocation: Int { state.withLock { $0.startedAfterRevocation } }

    /// Creates a consumer that passes its jobs to this handler. The flow of a job is the text before a colon in its
    /// name.
    func consumer(_ options: JobConsumer.Options, log: Log = .silent, metrics: Metrics = Metrics()) -> JobConsumer {
        JobConsumer(
            options: options, log: log, metrics: metrics,
            flow: { record in
                let parts = String(decoding: record.value ?? [], as: UTF8.self).split(separator: ":")
                return Flow(parts.count > 1 ? String(parts[0]) : nil)
            },
            receive: { for record in $0 { self.receive(record) } })
    }

    private func receive(_ job: JobDelivery) {
        let name = job.name
        state.withLock { $0.received.append(name) }
        switch behavior(name) {
        case .completes: if job.claim() { complete(job) } else { job.returnToQueue() }
        case .starts:
            if job.claim() { state.withLock { $0.started.append(job) } } else { job.returnToQueue() }
        case .waits:
            state.withLock { $0.waiting.append(job) }
            job.onRevocation { [self] in
                let isClaimed = job.claim()
                state.withLock { state in
                    state.revoked.append(name)
                    if isClaimed { state.startedAfterRevocation += 1 }
                }
                job.returnToQueue()
            }
        }
    }

    /// Completes started jobs.
    func completeStarted() {
        let jobs = state.withLock { state in
            defer { state.started = [] }
            return state.started
        }
        for job in jobs { complete(job) }
    }

    /// Completes started jobs, and waiting ones that were not revoked.
    func completeAll() {
        completeStarted()
        let jobs = state.withLock { state in
            defer { state.waiting = [] }
            return state.waiting
        }
        for job in jobs where job.claim() { complete(job) }
    }

    private func complete(_ job: JobDelivery) {
        state.withLock { $0.completed.append(job.name) }
        job.acknowledge()
    }
}

extension JobDelivery {
    fileprivate var name: String { String(decoding: record.value ?? [], as: UTF8.self) }
}
