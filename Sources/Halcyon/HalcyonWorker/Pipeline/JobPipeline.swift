import HalcyonCluster
import HalcyonModel
import HalcyonWire
import Kafka
import Telemetry

/// The pipeline of a job: read ``run(_:)`` from top to bottom.
///
///     decode ─▶ retry loop { look up ─▶ coalesce { fetch ─▶ render ─▶ store } ─▶ deliver } ─▶ publish ─▶ acknowledge
///
/// The inner braces run once for all jobs that want the same result, wherever they are. A failure is a value: whichever
/// stage a job stops at, its outcome becomes an event, a retry or a dead letter in one place, ``PublishStage``.
///
/// A class, because the task of each job holds it: a reference is copied, and not every stage.
final class JobPipeline: Sendable {
    let decoder: DecodeStage
    let lookup: LookupStage
    let resolver: ResultResolver
    let store: StoreStage
    let upload: UploadStage
    let publisher: PublishStage
    let progress: ProgressReports
    let cancellations: CancellationChecker
    let tags: TagIndexer
    let retries: RetryScheduler
    /// nil if no traces are recorded.
    let tracing: JobTracing?
    let report: JobReport

    init(
        decoder: DecodeStage, lookup: LookupStage, resolver: ResultResolver, store: StoreStage, upload: UploadStage,
        publisher: PublishStage, progress: ProgressReports, cancellations: CancellationChecker, tags: TagIndexer,
        retries: RetryScheduler, tracing: JobTracing?, report: JobReport
    ) {
        self.decoder = decoder
        self.lookup = lookup
        self.resolver = resolver
        self.store = store
        self.upload = upload
        self.publisher = publisher
        self.progress = progress
        self.cancellations = cancellations
        self.tags = tags
        self.retries = retries
        self.tracing = tracing
        self.report = report
    }

    /// Runs one job, from its record to its published event.
    /// - Parameters:
    ///   - decoded: the record, if it has been decoded.
    ///   - found: its cached results, if they have been looked up.
    func run(_ delivery: TakenRecord, decoded: DecodedRecord? = nil, found: [ResultKey: ReadyResult]? = nil) async {
        let job: JobContext
        switch decoded ?? decode(delivery.record) {
        case .job(let decoded): job = decoded
        case .refused(let refusal, let trace): return await reject(delivery, refusal, trace)
        }
        let outcome = await retryLoop(job, delivery) { [self] attempt in
            try await cancellations.checkBeforeStart(job.identity)
            let cached = if let found, attempt == 1 { found } else { try await lookup.find(job) }
            report.lookedUp(job, cached)
            if let ready = job.ready(from: cached) {
                await tags.index(ready.results, of: job)
                return ready
            }
            return try await cancellations.activeJobs.run(job.identity, until: job.deadlineInstant) { [self] active in
                delivery.onRecall { active.cancel(.recalled) }
                try await cancellations.checkSuperseded(job.identity)
                let tagVersions = await tags.versions(of: job)
                let start = StartNotifier(delivery, job, attempt, publisher, progress)
                let ready = try await start.notifying {
                    let resolved = try await resolver.resolve(job, cached, start)
                    return try await store.deliver(resolved, job)
                }
                let uploaded = try await upload.upload(ready, of: job)
                await tags.index(uploaded.results, of: job, since: tagVersions)
                return uploaded
            }
        }
        await publish(outcome, job, delivery)
    }

    /// Runs attempts until one succeeds, the policy gives the job up, or it moves to a retry topic.
    ///
    /// A job that waits for its next attempt holds a place in the window of its partition and nothing else. Its
    /// revocation, cancellation or superseding ends the wait at once.
    private func retryLoop(
        _ job: JobContext, _ delivery: TakenRecord, _ attempt: (_ number: Int) async throws -> Ready
    ) async -> Outcome {
        var attempts = JobAttempts(job)
        do {
            if let retry = job.retry {
                try await wait(for: retries.remaining(retry), job, delivery)
                attempts.restartClock()
            }
            attempts.queued(job)
            while true {
                try job.checkDeadline()
                attempts.begin()
                let failure: Failure
                do {
                    var ready = try await attempt(attempts.number)
                    try await cancellations.checkSuperseded(job.identity)
                    attempts.succeeded(&ready, job)
                    return .ended(.ready(ready))
                } catch let error where !(error is JobCancellationReason || error is CancellationError) {
                    failure = error as? Failure ?? Failure(unforeseen: error)
                }
                let failed = attempts.failed(failure)
                switch retries.decide(failed, job) {
                case .giveUp(let reason): return .gaveUp(failed, reason)
                case .later(let topic, let seconds): return .postponed(failed, topic: topic, after: seconds)
                case .now(let seconds):
                    report.willRetry(job, failed, after: seconds)
                    try await wait(for: seconds, job, delivery)
                }
            }
        } catch {
            return attempts.cancelled(by: error, job)
        }
    }

    /// - Throws: ``JobCancellationReason``; `CancellationError`.
    private func wait(for seconds: Double, _ job: JobContext, _ delivery: TakenRecord) async throws {
        guard seconds > 0 else { return }
        guard delivery.rest() else { throw JobCancellationReason.recalled }
        try await cancellations.activeJobs.run(job.identity, until: job.deadlineInstant) { active in
            delivery.onRecall { active.cancel(.recalled) }
            try await Task.sleep(for: .seconds(seconds))
        }
    }

    func decode(_ record: ConsumedRecord) -> DecodedRecord {
        let trace = tracing?.begin(record)
        do throws(JobRefusal) {
            let job = try decoder.decode(record, trace)
            report.decoded(job)
            return .job(job)
        } catch {
            return .refused(error, trace)
        }
    }

    func publish(_ outcome: Outcome, _ job: JobContext, _ delivery: TakenRecord) async {
        // A job that was recalled may have failed for that alone. Whatever its outcome, this worker or another one
        // publishes it.
        if case .handedBack = outcome { return handBack(delivery, job.trace) }
        guard delivery.begin() else { return handBack(delivery, job.trace) }
        do throws(KafkaError) {
            job.trace?.publishing(to: publisher.destination(of: outcome))
            let published = try await publisher.publish(outcome, of: job, delivery)
            job.trace?.end(JobEnd(published))
            report.ended(job, published)
        } catch {
            report.notPublished(error)
            handBack(delivery, job.trace)
        }
    }

    /// Ends a record that is no job that can be done.
    private func reject(_ delivery: TakenRecord, _ refusal: JobRefusal, _ trace: JobTrace?) async {
        guard delivery.begin() else { return handBack(delivery, trace) }
        do throws(KafkaError) {
            trace?.publishing(to: publisher.topics.events)
            try await publisher.reject(delivery, refusal, trace)
            trace?.end(.refused(refusal.failure.code))
            report.rejected(refusal, decoder.lane(of: delivery.record))
        } catch {
            report.notPublished(error)
            handBack(delivery, trace)
        }
    }

    func handBack(_ delivery: TakenRecord, _ trace: JobTrace?) {
        delivery.handBack()
        trace?.end(.handedBack)
    }
}
