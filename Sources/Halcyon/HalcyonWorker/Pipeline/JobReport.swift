import HalcyonCluster
import HalcyonModel
import HalcyonWire
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

    func rejected(_ refusal: JobRefusal, _ lane: Lane) {
        metrics.refused(refusal.failure.code, lane)
        let job: LogFields = ["job": refusal.id, "source": refusal.source?.loggedURL]
        log.warning("job refused", job.merging(LogFields(refusal.failure)))
    }

    func lookedUp(_ job: JobContext, _ found: [ResultKey: ReadyResult]) { metrics.lookedUp(job, found) }

    func willRetry(_ job: JobContext, _ failed: FailedJob, after seconds: Double) {
        metrics.retried(failed.failure.code, .process)
        log.debug("job tried again", fields(of: job, failed.fields.merging(["after": seconds])))
    }

    func notPublished(_ error: KafkaError) {
        if error.code == .illegalGeneration {
            log.info("a job is told of by another worker: its partition has gone", ["reason": error.message])
        } else {
            log.error("event not published: the worker is closed", ["error": "\(error)"])
        }
    }

    func ended(_ job: JobContext, _ outcome: Outcome) {
        switch outcome {
        case .handedBack: break
        case .postponed(let failed, let topic, let seconds):
            metrics.retried(failed.failure.code, .topic)
            let more: LogFields = ["through": topics.retries[topic], "after": seconds]
            log.info("job tried again later", fields(of: job, failed.fields.merging(more)))
        case .gaveUp(let failed, let reason):
            metrics.ended(failed.body, job.lane)
            if failed.isPutAside(reason) { metrics.putAside(failed.failure.code) }
            log.info("job failed", fields(of: job, failed.fields.merging(["given_up": reason.rawValue])))
        case .ended(let body):
            metrics.ended(body, job.lane)
            switch body {
            case .ready(let ready):
                log.debug(
                    "job ready", fields(of: job, ["origin": ready.origin.rawValue, "ms": ready.timings[.total]]))
            case .failed(let failure, _, _):
                log.info("job failed", fields(of: job, LogFields(failure)))
            case .cancelled: log.debug("job cancelled", fields(of: job, [:]))
            case .superseded(let generation):
                log.debug("job superseded", fields(of: job, ["by": Int(generation)]))
            case .started, .progress, .purged: break
            }
        }
    }

    /// The fields of every line about a job, and then `more`.
    private func fields(of job: JobContext, _ more: LogFields) -> LogFields {
        let trace = (job.trace?.context ?? job.traceparent.flatMap { TraceContext(traceparent: $0) })?.traceID
        let common: LogFields = [
            "job": job.job.id, "source": job.job.source.shownText.loggedURL, "key": job.keys[0].description,
            "trace": trace,
        ]
        return common.merging(more)
    }
}

extension FailedJob {
    fileprivate var fields: LogFields { LogFields(failure).merging(["attempts": history.count]) }
}

/// What comes of a job that a worker took.
enum Outcome: Sendable {
    /// It ends: ready, cancelled or superseded, or as nobody wants it any more.
    case ended(Event.Body)
    /// It failed, and is not tried again.
    case gaveUp(FailedJob, GivingUp)
    /// It failed, and is tried again after so many seconds, through the topic at this place of the list.
    case postponed(FailedJob, topic: Int, after: Double)
    /// It is another worker's: this one tells nothing of it.
    case handedBack
}

/// A job whose last attempt failed.
struct FailedJob: Sendable {
    /// What it ended with.
    let failure: Failure
    /// All attempts.
    let history: AttemptHistory
    /// How long what took.
    let timings: Timings

    /// Whether the message is put aside when it is given up for this reason, for somebody to look at and to replay.
    func isPutAside(_ reason: GivingUp) -> Bool { reason.isForLater || failure.code == .poison }

    /// What is told of it when it is not tried again.
    var body: Event.Body { .failed(failure, attempts: history.count, timings: timings) }
}
