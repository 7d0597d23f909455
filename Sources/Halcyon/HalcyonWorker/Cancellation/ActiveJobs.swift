import Concurrency
import Formats
import HalcyonCluster
import HalcyonModel
import HalcyonResults
import HalcyonSources
import Redis
import Telemetry

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
    }

    private let timers = TimerThread(name: "deadlines")
    private let state: Lock<State>
    private let isBatchCancelled: @Sendable (String) -> Bool

    /// - Parameters:
    ///   - cancelled: The jobs that are known to be cancelled.
    ///   - isBatchCancelled: A function that returns true if a batch was cancelled. It must know a cancellation before
    ///     ``cancel(batch:)`` is called.
    init(cancelled: CancelledJobs, isBatchCancelled: @escaping @Sendable (String) -> Bool = { _ in false }) {
        state = Lock(State(cancelled: cancelled))
        self.isBatchCancelled = isBatchCancelled
    }

    /// Runs the work of a job, which can be cancelled while it runs.
    /// - Parameters:
    ///   - work: The job and its attempt, for lists of jobs in flight.
    ///   - deadline: The deadline of the job. The job is cancelled as expired when it passes.
    /// - Throws: An error of `body`, or ``JobCancellationReason`` if the job was cancelled before `body` returned.
    func run<Outcome: Sendable>(
        _ identity: JobIdentity, _ work: ActiveJob.Work? = nil, until deadline: ContinuousClock.Instant?,
        _ body: @escaping @Sendable (ActiveJob) async throws -> Outcome
    ) async throws -> Outcome {
        let job = ActiveJob(identity, work)
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
        state.withLock { $0.cancelled.contains(identity) }
    }

    /// Cancels jobs: those in flight, and those submitted by `moment` that are received later.
    /// - Parameters:
    ///   - target: The jobs. Jobs in flight with a cancelled id are cancelled whenever they were submitted, others only
    ///     if they were submitted by `moment`.
    ///   - moment: The time of the cancellation, in milliseconds since 1970.
    ///   - isOld: True if the cancellation is older than this worker. Then only jobs submitted by `moment` are
    ///     cancelled, because jobs in flight may have been submitted later.
    func cancel(_ target: CancelTarget, at moment: Int64, isOld: Bool = false) {
        let key = CancellationKey(target)
        let (jobs, isByID) = state.withLock { state -> ([ActiveJob], Bool) in
            state.cancelled.cancel(key, at: moment, now: Timestamp.now.milliseconds)
            if case .job(let id, _) = target {
                return (state.jobs[Array(id.utf8), default: []].filter { $0.identity.isSelected(by: key) }, true)
            }
            return (state.jobs.values.flatMap { $0.filter { $0.identity.isSelected(by: key) } }, false)
        }
        for job in jobs where isByID && !isOld || job.identity.submitted <= moment { job.cancel(.cancelled) }
    }

    /// Cancels the jobs of a batch that are in flight.
    func cancel(batch: String) {
        for job in state.withLock({ $0.byBatch[Array(batch.utf8)] ?? [] }) { job.cancel(.cancelled) }
    }

    /// Cancels the jobs of a display slot whose generation is lower than `generation`.
    func supersede(_ slotKey: String, by generation: Int64) {
        for job in state.withLock({ $0.byDisplaySlot[Array(slotKey.utf8)] ?? [] }) {
            if let slot = job.identity.slot, slot.generation < generation { job.cancel(.superseded(by: generation)) }
        }
    }

    /// Returns the jobs in flight that match a request, the oldest first.
    func list(_ request: JobListRequest, worker: String) -> JobListing {
        let all = state.withLock { state in state.jobs.values.flatMap { $0 } }
        let matching = all.filter { job in
            guard let context = job.work?.job else { return false }
            return request.tenant.map { $0 == context.job.tenant } ?? true
                && request.lane.map { $0 == context.lane } ?? true
        }.sorted { ($0.identity.submitted, $0.identity.id) < ($1.identity.submitted, $1.identity.id) }
        return JobListing(
            jobs: matching.prefix(request.limit).compactMap { $0.description(worker: worker) }, total: matching.count,
            worker: worker)
    }

    /// The number of jobs in flight.
    var count: Int { state.withLock { $0.jobs.values.reduce(0) { $0 + $1.count } } }

    private func enter(_ job: ActiveJob) {
        let identity = job.identity
        let isCancelled = state.withLock { state in
            state.jobs[Array(identity.id.utf8), default: []].append(job)
            if let slot = identity.slot { state.byDisplaySlot[Array(slot.key.utf8), default: []].append(job) }
            if let batch = identity.batch { state.byBatch[Array(batch.utf8), default: []].append(job) }
            return state.cancelled.contains(identity)
        }
        // The cancellation arrived after the job was received.
        if isCancelled || identity.batch.map(isBatchCancelled) ?? false { job.cancel(.cancelled) }
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
    /// The job, for lists of jobs in flight.
    struct Work: Sendable {
        let job: JobContext
        /// The number of the current or last attempt, from 1.
        let attempt: Int
        /// True while the job waits for its next attempt.
        let isWaiting: Bool
    }

    private struct State {
        var reason: JobCancellationReason?
        var hasEnded = false
        var cancel: (@Sendable () -> Void)?
        var start: StartNotifier?
    }

    let identity: JobIdentity
    let work: Work?
    private let state = Lock(State())

    init(_ identity: JobIdentity, _ work: Work? = nil) {
        self.identity = identity
        self.work = work
    }

    /// Sets the notifier that knows the stage of the job.
    func follow(_ start: StartNotifier) { state.withLock { $0.start = start } }

    fileprivate func description(worker: String) -> JobDescription? {
        guard let work else { return nil }
        let stage: JobDescription.Stage =
            work.isWaiting ? .retrying : state.withLock(\.start)?.stage ?? .waiting
        let job = work.job
        return JobDescription(
            id: job.job.id, lane: job.lane, tenant: job.job.tenant, batch: identity.batch,
            source: job.job.source.shownText, stage: stage, attempt: work.attempt, submitted: identity.submitted,
            age: job.queued / 1000, worker: worker)
    }

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
            (state.cancel, state.start) = (nil, nil)
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
    let pauses: PauseReplica
    /// The client for replies, and the log and counter of those that failed.
    let redis: RedisClient
    let errors: ToleratedErrors
    /// The id of this worker in the registry.
    let worker: String

    /// Handles one message. Results and sources in the shared caches were purged before the message was published, so
    /// only the local caches of this worker are purged here.
    func handle(_ told: ControlReader.ReceivedControlMessage) async {
        switch told.message {
        case .cancel(let target): activeJobs.cancel(target, at: told.moment, isOld: told.isOld)
        case .purge(let purge, let stated):
            let time = stated ?? told.moment * 1000
            // Results that were made between the purge and this message remain.
            resultStore?.heard(purge, at: time)
            guard case .source(let source) = purge.target else { return }
            let request = SourceRequest(source, tenant: purge.tenant)
            // A source that was fetched after an old purge is newer than the purge.
            await sources.purgeLocal(request, at: time, keepsNewer: told.isOld)
            await assets.forget(request)
        case .preset: presets.invalidate()
        case .pause(let target, let time):
            pauses.take(Pauses.Change(isPaused: true, version: time ?? told.moment * 1000), of: target)
        case .resume(let target, let time):
            pauses.take(Pauses.Change(isPaused: false, version: time ?? told.moment * 1000), of: target)
        case .list(let request):
            // The requester of an old message no longer waits.
            guard !told.isOld, Timestamp.now.milliseconds - told.moment < JobLister.lifetime else { return }
            let list = activeJobs.list(request, worker: worker)
            // Redis must not delay further messages.
            Task { await errors.tolerating { try await JobLister.reply(to: request, with: list, redis) } }
        }
    }
}
