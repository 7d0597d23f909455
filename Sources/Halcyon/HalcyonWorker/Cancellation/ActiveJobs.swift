import Formats
import HalcyonCluster
import HalcyonModel
import HalcyonSources
import Threads

/// The reason why a job leaves its work. The work goes on while others want it.
enum JobCancellationReason: Error, Equatable {
    /// Its deadline passed.
    case expired
    /// Another worker does it: its partition has moved, or this worker leaves.
    case recalled
    /// Somebody cancelled it.
    case cancelled
    /// A job of this generation, which is higher than its own, is for its slot.
    case superseded(by: Int64)
}

/// The identity of a job for those who may cancel it.
struct JobIdentity: Sendable {
    let id: String
    /// Milliseconds since 1970.
    let submitted: Int64
    let slot: SlotClaim?
}

/// The jobs that wait for work. Each can be cancelled, for one reason, until it has its results.
final class ActiveJobs: Sendable {
    private struct State {
        var cancelled: CancelledJobs
        /// By the bytes of their ids; one id may be that of several jobs.
        var jobs: [[UInt8]: [ActiveJob]] = [:]
        /// Those for slots, by the bytes of the slot's key.
        var slots: [[UInt8]: [ActiveJob]] = [:]
    }

    private let alarms = Alarms(name: "deadlines")
    private let state: Lock<State>

    /// - Parameter cancelled: the jobs that are known to be cancelled.
    init(cancelled: CancelledJobs) { state = Lock(State(cancelled: cancelled)) }

    /// Does what a job needs.
    /// - Parameter deadline: when the job expires.
    /// - Throws: what `body` throws; ``JobCancellationReason`` when the job was cancelled before `body` returned.
    func run<Outcome: Sendable>(
        _ identity: JobIdentity, until deadline: ContinuousClock.Instant?,
        _ body: @escaping @Sendable (ActiveJob) async throws -> Outcome
    ) async throws -> Outcome {
        let job = ActiveJob(identity)
        enter(job)
        let alarm = deadline.map { alarms.set(at: $0) { job.cancel(.expired) } }
        defer {
            if let alarm { alarms.cancel(alarm) }
            leave(job)
        }
        let task = Task { try await body(job) }
        job.begin(task.cancel)
        let result = await task.resultCancelledWithWaiter
        if let reason = job.end() { throw reason }
        return try result.get()
    }

    /// Whether somebody has cancelled a job that is not under way yet.
    func isCancelled(_ identity: JobIdentity) -> Bool {
        state.withLock { $0.cancelled.contains(identity.id, submitted: identity.submitted) }
    }

    /// Somebody cancelled the jobs of this id: those under way, and those submitted by then that are taken later.
    /// - Parameters:
    ///   - moment: when, in milliseconds since 1970.
    ///   - isOld: whether that was before this worker listened. Jobs under way may have been submitted since: the moment decides.
    func cancel(_ id: String, at moment: Int64, isOld: Bool = false) {
        let id = Array(id.utf8)
        let jobs = state.withLock { state in
            state.cancelled.cancel(String(decoding: id, as: UTF8.self), at: moment, now: Timestamp.now.milliseconds)
            return state.jobs[id] ?? []
        }
        for job in jobs where !isOld || job.identity.submitted <= moment { job.cancel(.cancelled) }
    }

    /// A job of this generation is for the slot of this key.
    func supersede(_ slotKey: String, by generation: Int64) {
        for job in state.withLock({ $0.slots[Array(slotKey.utf8)] ?? [] }) {
            if let slot = job.identity.slot, slot.generation < generation { job.cancel(.superseded(by: generation)) }
        }
    }

    /// How many there are.
    var count: Int { state.withLock { $0.jobs.values.reduce(0) { $0 + $1.count } } }

    private func enter(_ job: ActiveJob) {
        let identity = job.identity
        let isCancelled = state.withLock { state in
            state.jobs[Array(identity.id.utf8), default: []].append(job)
            if let slot = identity.slot { state.slots[Array(slot.key.utf8), default: []].append(job) }
            return state.cancelled.contains(identity.id, submitted: identity.submitted)
        }
        // It came since the job was taken.
        if isCancelled { job.cancel(.cancelled) }
    }

    private func leave(_ job: ActiveJob) {
        state.withLock { state in
            state.jobs.remove(job, from: Array(job.identity.id.utf8))
            if let slot = job.identity.slot { state.slots.remove(job, from: Array(slot.key.utf8)) }
        }
    }
}

extension [[UInt8]: [ActiveJob]] {
    fileprivate mutating func remove(_ job: ActiveJob, from key: [UInt8]) {
        self[key]?.removeAll { $0 === job }
        if self[key]?.isEmpty == true { self[key] = nil }
    }
}

/// One of them.
final class ActiveJob: Sendable {
    private struct State {
        var reason: JobCancellationReason?
        var hasEnded = false
        var cancel: (@Sendable () -> Void)?
    }

    let identity: JobIdentity
    private let state = Lock(State())

    init(_ identity: JobIdentity) { self.identity = identity }

    func begin(_ cancel: @escaping @Sendable () -> Void) {
        let isCancelled = state.withLock { state in
            state.cancel = cancel
            return state.reason != nil
        }
        if isCancelled { cancel() }
    }

    /// Takes the job off its work. It is too late once the job has what it wanted, and only the first reason counts.
    func cancel(_ reason: JobCancellationReason) {
        let cancel: (@Sendable () -> Void)? = state.withLock { state in
            guard !state.hasEnded, state.reason == nil else { return nil }
            state.reason = reason
            return state.cancel
        }
        cancel?()
    }

    fileprivate func end() -> JobCancellationReason? {
        state.withLock { state in
            state.hasEnded = true
            state.cancel = nil
            return state.reason
        }
    }
}

/// Checks whether anybody still wants a job.
struct CancellationChecker: Sendable {
    let activeJobs: ActiveJobs
    let slots: SlotBook
    let control: ControlReader

    /// Checks before anything is done for a job, and claims its slot.
    /// - Throws: ``JobCancellationReason`` if nobody wants it.
    func checkBeforeStart(_ job: JobIdentity) async throws {
        // Messages from before this worker began count too.
        await control.caughtUp()
        if activeJobs.isCancelled(job) { throw JobCancellationReason.cancelled }
        guard let slot = job.slot else { return }
        if let newer = await slots.claim(slot) { throw JobCancellationReason.superseded(by: newer) }
    }

    /// Checks whether a newer job has the slot of this one: the message about it may have been missed.
    /// - Throws: ``JobCancellationReason`` `superseded`.
    func checkSuperseded(_ job: JobIdentity) async throws {
        guard let slot = job.slot else { return }
        if let newer = await slots.newer(than: slot) { throw JobCancellationReason.superseded(by: newer) }
    }
}

/// Handles the control messages that all workers receive.
struct ControlMessageHandler: Sendable {
    let activeJobs: ActiveJobs
    let sources: SourceCache
    let assets: SharedSources

    /// Results, and sources that all workers share, have gone before this was said: what is left is what this worker keeps for itself.
    func handle(_ told: ControlReader.Told) async {
        switch told.message {
        case .cancel(let id): activeJobs.cancel(id, at: told.moment, isOld: told.isOld)
        case .purge(let purge):
            guard case .source(let source) = purge.target else { return }
            let request = SourceRequest(source, tenant: purge.tenant)
            // What was kept since an old word is newer than the purge.
            await sources.evictLocal(request, storedBefore: told.isOld ? Double(told.moment) / 1000 : .infinity)
            await assets.forget(request)
        }
    }
}
