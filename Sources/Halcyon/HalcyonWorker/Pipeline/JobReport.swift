import Formats
import HalcyonCluster
import HalcyonCoding
import HalcyonModel
import Kafka
import Telemetry

/// Counts and logs the steps of jobs.
struct JobReport: Sendable {
    let metrics: WorkerMetrics
    let topics: Topics
    let log: Log

    func decoded(_ job: JobContext) {
        guard !job.unknownFields.isEmpty else { return }
        metrics.unknownFields.add(job.unknownFields.count)
        log.info("unknown fields ignored", fields(of: job, ["fields": job.warnings]))
    }

    func rejected(_ refusal: InvalidJobError, _ lane: Lane) {
        metrics.refused(refusal.failure.code, lane)
        let job: LogMetadata = ["job": refusal.id, "source": refusal.source?.loggedURL]
        log.warning("job refused", job.merging(LogMetadata(refusal.failure)))
    }

    /// - Parameter hits: The number of the job's variants whose results are cached.
    func lookedUp(_ job: JobContext, hits: Int) { metrics.lookedUp(job, hits: hits) }

    func willRetry(_ job: JobContext, _ failed: FailedJob, after seconds: Double) {
        metrics.retried(failed.failure.code, .process)
        log.debug("retrying failed job", fields(of: job, failed.fields.merging(["after": seconds])))
    }

    func fallbackFailed(_ job: JobContext, _ error: JobError) {
        log.warning("fallback picture not available", fields(of: job, LogMetadata(error)))
    }

    func notPublished(_ error: KafkaError) {
        if error.code == .illegalGeneration {
            log.info("partition revoked; another worker will publish this job's event", ["reason": error.message])
        } else {
            log.error("event not published: the worker is shutting down", ["error": "\(error)"])
        }
    }

    func ended(_ job: JobContext, _ outcome: Outcome) {
        switch outcome {
        case .handedBack: break
        case .postponed(let failed, let topic, let seconds):
            metrics.retried(failed.failure.code, .topic)
            let more: LogMetadata = ["through": topics.retries[topic], "after": seconds]
            log.info("job will be retried later", fields(of: job, failed.fields.merging(more)))
        case .scheduled(let topic, let seconds):
            metrics.scheduled.add()
            log.debug("job waits for its start", fields(of: job, ["in": topics.delays[topic], "for": seconds]))
        case .gaveUp(let failed, let reason):
            metrics.ended(failed.body, job.lane, of: job.job.tenant, isRetried: job.isFromRetryTopic)
            if failed.isPutAside(reason) { metrics.putAside(failed.failure.code) }
            log.info("job failed", fields(of: job, failed.fields.merging(["given_up": reason.rawValue])))
        case .ended(let body):
            metrics.ended(body, job.lane, of: job.job.tenant, isRetried: job.isFromRetryTopic)
            switch body {
            case .ready(let ready):
                if let failure = ready.fallback {
                    metrics.fellBack(failure.code)
                    log.info("job ready with its fallback picture", fields(of: job, LogMetadata(failure)))
                }
                log.debug(
                    "job ready", fields(of: job, ["origin": ready.origin.rawValue, "ms": ready.timings[.total]]))
            case .failed(let failure, _, _):
                log.info("job failed", fields(of: job, LogMetadata(failure)))
            case .cancelled: log.debug("job cancelled", fields(of: job, [:]))
            case .superseded(let generation):
                log.debug("job superseded", fields(of: job, ["by": Int(generation)]))
            case .started, .progress, .purged: break
            }
        }
    }

    /// Returns the common fields of all log lines about a job, followed by `more`.
    private func fields(of job: JobContext, _ more: LogMetadata) -> LogMetadata {
        let trace = (job.trace?.context ?? job.traceparent.flatMap { TraceContext(traceparent: $0) })?.traceID
        let common: LogMetadata = [
            "job": job.job.id, "source": job.job.source.shownText.loggedURL, "key": job.keys.first?.description,
            "trace": trace,
        ]
        return common.merging(more)
    }
}

extension FailedJob {
    fileprivate var fields: LogMetadata { LogMetadata(failure).merging(["attempts": history.count]) }
}

/// The outcome of a job on this worker.
enum Outcome: Sendable {
    /// The job ended: it is ready, cancelled, superseded or expired.
    case ended(Event.Body)
    /// The job failed and is not retried.
    case gaveUp(FailedJob, RetryExhaustedReason)
    /// The job failed and is retried after a delay in seconds, through the retry topic with this index.
    case postponed(FailedJob, topic: Int, after: Double)
    /// The job waits for its start for a number of seconds, in the delay topic with this index.
    case scheduled(topic: Int, after: Double)
    /// The job was returned to the queue. Another worker publishes its outcome.
    case handedBack
}

/// A job whose last attempt failed.
struct FailedJob: Sendable {
    /// The error of the last attempt.
    let failure: JobError
    /// The history of all attempts.
    let history: AttemptHistory
    /// The durations of the stages.
    let timings: Timings

    /// Returns true if the message goes to the dead-letter topic, where it can be inspected and replayed.
    func isPutAside(_ reason: RetryExhaustedReason) -> Bool { reason.isForLater || failure.code == .poison }

    /// The body of its final event.
    var body: Event.Body { .failed(failure, attempts: max(1, history.count), timings: timings) }
}

/// Reports the ends of jobs of batches, after their events were published.
struct BatchReporter: Sendable {
    let tracker: BatchTracker

    func ended(_ job: JobContext, _ outcome: Outcome) {
        guard let batch = job.job.batch else { return }
        switch outcome {
        case .handedBack, .postponed, .scheduled: break
        case .ended(.ready): report(batch, job.job.id, .ready)
        case .ended(.cancelled): report(batch, job.job.id, .cancelled)
        case .ended(.superseded): report(batch, job.job.id, .superseded)
        case .ended(.failed(let failure, _, _)): report(batch, job.job.id, .failed, failure, job.origin)
        case .gaveUp(let failed, _): report(batch, job.job.id, .failed, failed.failure, job.origin)
        case .ended(.started), .ended(.progress), .ended(.purged): break
        }
    }

    func refused(_ refusal: InvalidJobError, _ origin: OriginalRecord) {
        guard let batch = refusal.batch else { return }
        report(batch, refusal.id ?? origin.coordinates, .failed, refusal.failure, origin)
    }

    private func report(
        _ batch: BatchMembership, _ job: String, _ outcome: Event.Kind, _ failure: JobError? = nil,
        _ origin: OriginalRecord? = nil
    ) {
        let failure = failure.map {
            BatchFailure(
                job: job, index: batch.index, code: $0.code.rawValue, message: $0.message,
                record: origin?.coordinates ?? "")
        }
        tracker.ended(
            BatchEnd(batch, job: job, outcome: outcome, failure: failure, time: Timestamp.now.milliseconds))
    }
}
