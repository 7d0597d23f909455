import HalcyonCluster
import HalcyonCoding
import HalcyonModel
import Kafka
import Telemetry

/// The processing pipeline of a job. Start reading at ``run(_:)``.
///
///     decode ─▶ retry loop { look up ─▶ coalesce { restore, or fetch ─▶ render ─▶ store } ─▶ deliver } ─▶ publish ─▶
///     acknowledge
///
/// The inner braces run once for all jobs in the cluster that need the same result. Failures are values. Whichever
/// stage a job stops at, its outcome becomes an event, a retry or a dead letter in ``PublishStage``.
///
/// A class, because the task of each job holds it. Copying a reference is cheaper than copying all stages.
final class JobPipeline: Sendable {
    let decoder: DecodeStage
    let presets: PresetCatalog
    let lookup: LookupStage
    let resolver: ResultResolver
    let store: StoreStage
    let upload: UploadStage
    let publisher: PublishStage
    let progress: ProgressReports
    let cancellations: CancellationChecker
    let tags: TagIndexer
    let presetJobs: PresetIndexer
    let retries: RetryScheduler
    /// The recorder of traces. Nil if no traces are recorded.
    let tracing: JobTracing?
    let report: JobReport
    let batches: BatchReporter
    let refresher: ResultRefresher

    init(
        decoder: DecodeStage, presets: PresetCatalog, lookup: LookupStage, resolver: ResultResolver, store: StoreStage,
        upload: UploadStage,
        publisher: PublishStage, progress: ProgressReports, cancellations: CancellationChecker, tags: TagIndexer,
        presetJobs: PresetIndexer,
        retries: RetryScheduler, tracing: JobTracing?, report: JobReport,
        batches: BatchReporter, refresher: ResultRefresher
    ) {
        self.decoder = decoder
        self.presets = presets
        self.lookup = lookup
        self.resolver = resolver
        self.store = store
        self.upload = upload
        self.publisher = publisher
        self.progress = progress
        self.cancellations = cancellations
        self.tags = tags
        self.presetJobs = presetJobs
        self.retries = retries
        self.tracing = tracing
        self.report = report
        self.batches = batches
        self.refresher = refresher
    }

    /// Runs one job, from its record to its published event.
    /// - Parameters:
    ///   - decoded: The decoded record, if it has been decoded.
    ///   - found: The cached results, if they have been looked up.
    func run(_ delivery: JobDelivery, decoded: DecodedRecord? = nil, found: [ResultKey: ImageResult]? = nil) async {
        guard let decoded = await withPreset(decoded ?? decode(delivery.record), delivery) else { return }
        let job: JobContext
        switch decoded {
        case .job(let decoded): job = decoded
        case .refused(let refusal, let trace): return await reject(delivery, refusal, trace)
        }
        let outcome = await retryLoop(job, delivery) { [self] job, attempt in
            try await cancellations.checkBeforeStart(job.identity)
            let (cached, origin) =
                if let found, attempt == 1, job.isOwnSource {
                    (found, CacheStatus.memory)
                } else {
                    try await lookup.find(job)
                }
            report.lookedUp(job, hits: job.keys.count { cached[$0] != nil })
            if let ready = job.ready(from: cached, origin) {
                await tags.index(ready.results, of: job)
                await presetJobs.index(ready.results, of: job, delivery.record)
                try await persist(ready, of: job)
                return ready
            }
            let work = ActiveJob.Work(job: job, attempt: attempt, isWaiting: false)
            return try await cancellations.activeJobs.run(job.identity, work, until: job.deadlineInstant) {
                [self] active in
                delivery.onRevocation { active.cancel(.revoked) }
                try await cancellations.checkSuperseded(job.identity)
                let tagVersions = await tags.versions(of: job)
                let start = StartNotifier(delivery, job, attempt, publisher, progress)
                active.follow(start)
                let ready = try await start.notifying {
                    try await job.firstSource(cached, lookup) { source, cached in
                        let resolved = try await resolver.resolve(source, cached, start)
                        return try await store.deliver(resolved, source)
                    }
                }
                let uploaded = try await upload.upload(ready, of: job)
                await tags.index(uploaded.results, of: job, since: tagVersions)
                await presetJobs.index(uploaded.results, of: job, delivery.record)
                try await persist(uploaded, of: job)
                return uploaded
            }
        }
        await publish(outcome, job, delivery)
    }

    /// Waits until the results are durable in the result store, if the job requires that.
    private func persist(_ ready: Ready, of job: JobContext) async throws {
        guard job.job.cache.store == .required else { return }
        guard let persist = store.persist else {
            throw JobError(.invalidJob, "cache.store is \"required\", but the workers have no results.store")
        }
        try await persist.ensure(ready.results, of: job)
    }

    /// Runs attempts until one succeeds, the retry policy gives the job up, or the job moves to a retry topic. A job
    /// that may not start yet moves to a delay topic.
    ///
    /// A job that waits for its next attempt occupies an entry in the window of its partition and nothing else. If it
    /// is revoked, cancelled or superseded, the wait ends at once.
    ///
    /// A job that is given up ends with its fallback picture if it has one.
    private func retryLoop(
        _ job: JobContext, _ delivery: JobDelivery, _ attempt: (JobContext, _ number: Int) async throws -> Ready
    ) async -> Outcome {
        var attempts = JobAttempts(job)
        do {
            if let retry = job.retry { try await wait(for: retry.left, job, after: attempts.number, delivery) }
            if let seconds = job.untilStart {
                try await cancellations.checkBeforeStart(job.identity)
                if let delay = retries.delay(for: seconds) {
                    return .scheduled(topic: delay.topic, after: delay.seconds)
                }
                try await wait(for: seconds, job, after: attempts.number, delivery)
            }
            attempts.queued(job)
            while true {
                try job.checkDeadline()
                attempts.begin()
                let (failed, decision): (FailedJob, RetryPolicy.Decision)
                do {
                    var ready = try await attempt(job, attempts.number)
                    try await cancellations.checkSuperseded(job.identity)
                    attempts.succeeded(&ready)
                    return .ended(.ready(ready))
                } catch let error as PostponedAttempt {
                    failed = attempts.postponed(error.failure, job)
                    decision = retries.decidePostponed(failed, job)
                } catch {
                    failed = attempts.failed(try failure(of: error, delivery), job)
                    decision = retries.decide(failed, job)
                }
                switch decision {
                case .giveUp(let reason):
                    guard let fallback = job.fallback else { return .gaveUp(failed, reason) }
                    do {
                        var ready = try await attempt(fallback, attempts.number)
                        try await cancellations.checkSuperseded(job.identity)
                        ready.fallback = failed.failure
                        attempts.succeeded(&ready)
                        return .ended(.ready(ready))
                    } catch {
                        report.fallbackFailed(job, try failure(of: error, delivery))
                        return .gaveUp(failed, reason)
                    }
                case .later(let topic, let seconds): return .postponed(failed, topic: topic, after: seconds)
                case .now(let seconds):
                    report.willRetry(job, failed, after: seconds)
                    try await wait(for: seconds, job, after: attempts.number, delivery)
                }
            }
        } catch {
            return attempts.cancelled(by: error, job)
        }
    }

    /// Returns the failure of an attempt.
    ///
    /// A job is cancelled only with a reason. Any other `CancellationError` is a failure of its work, unless the job
    /// was revoked a moment ago or the worker has been drained.
    /// - Throws: ``JobCancellationReason`` if the job was cancelled or must be returned to the queue.
    private func failure(of error: any Error, _ delivery: JobDelivery) throws(JobCancellationReason) -> JobError {
        if let reason = error as? JobCancellationReason { throw reason }
        if error is CancellationError, !delivery.release() { throw .revoked }
        return error as? JobError ?? JobError(unforeseen: error)
    }

    /// Waits before an attempt.
    /// - Parameter attempt: The number of the last attempt.
    /// - Throws: ``JobCancellationReason`` or `CancellationError`.
    func wait(
        for seconds: Double, _ job: JobContext, after attempt: Int, _ delivery: JobDelivery
    ) async throws {
        guard seconds > 0 else { return }
        let due = ContinuousClock.now + .seconds(seconds)
        guard delivery.release(until: due) else { throw JobCancellationReason.revoked }
        report.metrics.delayed.add(1)
        defer { report.metrics.delayed.add(-1) }
        let work = ActiveJob.Work(job: job, attempt: attempt, isWaiting: true)
        try await cancellations.activeJobs.run(job.identity, work, until: job.deadlineInstant) { active in
            delivery.onRevocation { active.cancel(.revoked) }
            try await Task.sleep(for: .seconds(seconds))
        }
    }

    func decode(_ record: ConsumedRecord) -> DecodedRecord { decode(record, tracing?.begin(record)) }

    func decode(_ record: ConsumedRecord, _ trace: JobTrace?) -> DecodedRecord {
        do throws(InvalidJobError) {
            let job = try decoder.decode(record, trace)
            report.decoded(job)
            return .job(job)
        } catch {
            return .refused(error, trace)
        }
    }

    func publish(_ outcome: Outcome, _ job: JobContext, _ delivery: JobDelivery) async {
        // A revoked job may have failed only because of the revocation. This worker or the next one publishes its
        // outcome.
        if case .handedBack = outcome { return returnToQueue(delivery, job.trace) }
        guard delivery.claim() else { return returnToQueue(delivery, job.trace) }
        await refresher.ending(job, delivery.record, outcome)
        do throws(KafkaError) {
            job.trace?.publishing(to: publisher.destination(of: outcome))
            let published = try await publisher.publish(outcome, of: job, delivery)
            job.trace?.end(JobSpanOutcome(published))
            report.ended(job, published)
            batches.ended(job, published)
        } catch {
            report.notPublished(error)
            returnToQueue(delivery, job.trace)
        }
    }

    /// Rejects a record that does not contain a valid job.
    private func reject(_ delivery: JobDelivery, _ refusal: InvalidJobError, _ trace: JobTrace?) async {
        guard delivery.claim() else { return returnToQueue(delivery, trace) }
        do throws(KafkaError) {
            trace?.publishing(to: publisher.topics.events)
            batches.refused(refusal, try await publisher.reject(delivery, refusal, trace))
            trace?.end(.refused(refusal.failure.code))
            report.rejected(refusal, decoder.lane(of: delivery.record))
        } catch {
            report.notPublished(error)
            returnToQueue(delivery, trace)
        }
    }

    func returnToQueue(_ delivery: JobDelivery, _ trace: JobTrace?) {
        delivery.returnToQueue()
        trace?.end(.handedBack)
    }
}
