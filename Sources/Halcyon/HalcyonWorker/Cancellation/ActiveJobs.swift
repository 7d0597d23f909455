import Concurrency
import Formats
import HalcyonCluster
import HalcyonModel
import HalcyonResults
import HalcyonSources

/// The reason for which a job is stopped. An operation that it shares continues while other jobs wait for it.
enum JobCancellationReason: Error, Equatable {
    /// The deadline of the job passed.
    case expired
    /// The partition was revoked, or this worker is shutting down. Another worker processes the job.
    case revoked
    /// A client cancelled the job.
    case cancelled
    /// A newer job claimed the display slot, with this generation, which is higher than the job's own.
    case superseded(by: Int64)
}

/// The attributes of a job by which it is cancelled or superseded.
struct JobIdentity: Sendable {
    let id: String
    /// Milliseconds since 1970.
    let submitted: Int64
    let slot: SupersedeToken?
    /// The batch of the job; nil for none.
    var batch: String?
}

/// The jobs in flight. A job can be cancelled once, with one reason, until it has its results.
final class ActiveJobs: Sendable {
    private struct State {
        var cancelled: CancelledJobs
        /// The jobs by the UTF-8 bytes of their ids. Several jobs may have the same id.
        var jobs: [[UInt8]: [ActiveJob]] = [:]
        /// The jobs that have a display slot, by the UTF-8 bytes of its key.
        var byDisplaySlot: [[UInt8]: [ActiveJob]] = [:]
        /// The jobs that belong to a batch, by the UTF-8 bytes of its id.
        var byBatch: [[UInt8]: [ActiveJob]] = [:]
        /// The batches that were cancelled.
        var cancelledBatches: Set<String> = []
    }

    private let timers = TimerThread(name: "deadlines")
    private let state: Lock<State>

    /// - Parameter cancelled: The jobs that are known to be cancelled.
    init(cancelled: CancelledJobs) { state = Lock(State(cancelled: cancelled)) }

    /// Runs the work of a job, which can be cancelled while it runs.
    /// - Parameter deadline: The deadline of the job. The job is cancelled as expired when it passes.
    /// - Throws: An error of `body`, or ``JobCancellationReason`` if the job was cancelled before `body` returned.
    func run<Outcome: Sendable>(
        _ identity: JobIdentity, until deadline: ContinuousClock.Instant?,
        _ body: @escaping @Sendable (ActiveJob) async throws -> Outcome
    ) async throws -> Outcome {
        let job = ActiveJob(identity)
        enter(job)
        let timer = deadline.map { timers.set(at: $0) { job.cancel(.expired) } }
        defer {
            if let timer { timers.cancel(timer) }
            leave(job)
        }
        let task = Task { try await body(job) }
        job.begin(task.cancel)
        let result = await task.resultCancelledWithWaiter
        if let reason = job.end() { throw reason }
        return try result.get()
    }

    /// Returns true if a job that is not in flight yet was cancelled.
    func isCancelled(_ identity: JobIdentity) -> Bool {
        state.withLock { $0.cancelled.contains(identity.id, submitted: identity.submitted) }
    }

    /// Cancels the jobs with this id: those in flight, and those submitted by `moment` that are received later.
    /// - Parameters:
    ///   - moment: The time of the cancellation, in milliseconds since 1970.
    ///   - isOld: True if the cancellation is older than this worker. Then only jobs submitted by `moment` are
    ///     cancelled, because jobs in flight may have been submitted later.
    func cancel(_ id: String, at moment: Int64, isOld: Bool = false) {
        let id = Array(id.utf8)
        let jobs = state.withLock { state in
            state.cancelled.cancel(String(decoding: id, as: UTF8.self), at: moment, now: Timestamp.now.milliseconds)
            return state.jobs[id] ?? []
        }
        for job in jobs where !isOld || job.identity.submitted <= moment { job.cancel(.cancelled) }
    }

    /// Cancels the jobs of a batch that are in flight.
    func cancel(batch: String) {
        let jobs = state.withLock { state in
            // A job may be about to enter, after its batch was checked. That takes moments, so old ones are forgotten.
            if state.cancelledBatches.count >= 1000 { state.cancelledBatches = [] }
            state.cancelledBatches.insert(batch)
            return state.byBatch[Array(batch.utf8)] ?? []
        }
        for job in jobs { job.cancel(.cancelled) }
    }

    /// Cancels the jobs of a display slot whose generation is lower than `generation`.
    func supersede(_ slotKey: String, by generation: Int64) {
        for job in state.withLock({ $0.byDisplaySlot[Array(slotKey.utf8)] ?? [] }) {
            if let slot = job.identity.slot, slot.generation < generation { job.cancel(.superseded(by: generation)) }
        }
    }

    /// The number of jobs in flight.
    var count: Int { state.withLock { $0.jobs.values.reduce(0) { $0 + $1.count } } }

    private func enter(_ job: ActiveJob) {
        let identity = job.identity
        let isCancelled = state.withLock { state in
            state.jobs[Array(identity.id.utf8), default: []].append(job)
            if let slot = identity.slot { state.byDisplaySlot[Array(slot.key.utf8), default: []].append(job) }
            if let batch = identity.batch { state.byBatch[Array(batch.utf8), default: []].append(job) }
            return state.cancelled.contains(identity.id, submitted: identity.submitted)
                || identity.batch.map(state.cancelledBatches.contains) ?? false
        }
        // The cancellation arrived after the job was received.
        if isCancelled { job.cancel(.cancelled) }
    }

    private func leave(_ job: ActiveJob) {
        state.withLock { state in
            state.jobs.remove(job, from: Array(job.identity.id.utf8))
            if let slot = job.identity.slot { state.byDisplaySlot.remove(job, from: Array(slot.key.utf8)) }
            if let batch = job.identity.batch { state.byBatch.remove(job, from: Array(batch.utf8)) }
        }
    }
}

extension [[UInt8]: [ActiveJob]] {
    fileprivate mutating func remove(_ job: ActiveJob, from key: [UInt8]) {
        self[key]?.removeAll { $0 === job }
        if self[key]?.isEmpty == true { self[key] = nil }
    }
}

/// A job in flight.
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

    /// Cancels the job. Has no effect once the job has its results. Only the first reason counts.
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

/// Checks whether a job has been cancelled or superseded.
struct CancellationChecker: Sendable {
    let activeJobs: ActiveJobs
    let supersedeStore: SupersedeStore
    let control: ControlReader
    let batches: BatchLog

    /// Waits until the cancellations that were published before this worker started are known.
    func caughtUp() async {
        await control.caughtUp()
        await batches.caughtUp()
    }

    /// Returns true if a job that is not in flight yet was cancelled, alone or with its batch.
    func isCancelled(_ job: JobIdentity) -> Bool {
        activeJobs.isCancelled(job) || job.batch.map(batches.isCancelled) ?? false
    }

    /// Checks a job before its work starts, and claims its display slot.
    /// - Throws: ``JobCancellationReason`` if the job was cancelled or superseded.
    func checkBeforeStart(_ job: JobIdentity) async throws {
        // Messages that were published before this worker started count too.
        await caughtUp()
        if isCancelled(job) { throw JobCancellationReason.cancelled }
        guard let slot = job.slot else { return }
        if let newer = await supersedeStore.claim(slot) { throw JobCancellationReason.superseded(by: newer) }
    }

    /// Checks Redis for a newer job in the display slot, because the message about it may have been missed.
    /// - Throws: ``JobCancellationReason`` `superseded` if there is one.
    func checkSuperseded(_ job: JobIdentity) async throws {
        guard let slot = job.slot else { return }
        if let newer = await supersedeStore.newer(than: slot) { throw JobCancellationReason.superseded(by: newer) }
    }
}

/// Handles the control messages that all workers receive.
struct ControlMessageHandler: Sendable {
    let activeJobs: ActiveJobs
    let sources: SourceCache
    let assets: AssetCache
    let resultStore: ResultStore?
    let presets: PresetCatalog

    /// Handles one message. Results and sources in the shared caches were purged before the message was published, so
    /// only the local caches of this worker are purged here.
    func handle(_ told: ControlReader.ReceivedControlMessage) async {
        switch told.message {
        case .cancel(let id): activeJobs.cancel(id, at: told.moment, isOld: told.isOld)
        case .purge(let purge, let time):
            // Results that were made between the purge and this message remain.
            resultStore?.heard(purge, at: time ?? told.moment * 1000)
            guard case .source(let source) = purge.target else { return }
            let request = SourceRequest(source, tenant: purge.tenant)
            // A source that was cached after an old purge is newer than the purge.
            await sources.evictLocal(request, storedBefore: told.isOld ? Double(told.moment) / 1000 : .infinity)
            await assets.forget(request)
        case .preset: presets.invalidate()
        }
    }
}
