import CivilTime
import HalcyonCluster
import HalcyonModel
import HalcyonWire
import Kafka
import Telemetry

/// The line that a job goes down, once for each attempt at it: read it from top to bottom.
///
///     taken ─▶ intake ─▶ lookup ─▶ coalesce (fetch ─▶ render ─▶ keep) ─▶ deliver ─▶ put ─▶ publish ─▶ ended
///
/// What stands in the brackets is done once for all jobs that want the same, wherever they are. Failure is a value: whatever stage a
/// job stops at, one place turns the outcome into its event, its retry or its dead letter.
///
/// A class, because each job's task has it: a reference is carried there, and not all stages.
final class Line: Sendable {
    let intake: Intake
    let lookup: Lookup
    let coalesce: Coalesce
    let deliver: Store
    let put: Put
    let publish: Publish
    let progress: ProgressReports
    let wanted: Wanted
    let tagging: Tagging
    let retrying: Retrying
    /// nil records nothing.
    let tracing: JobTracing?
    let metrics: WorkerMetrics
    let log: Log

    init(
        intake: Intake, lookup: Lookup, coalesce: Coalesce, deliver: Store, put: Put, publish: Publish,
        progress: ProgressReports, wanted: Wanted,
        tagging: Tagging, retrying: Retrying, tracing: JobTracing?, metrics: WorkerMetrics, log: Log
    ) {
        self.intake = intake
        self.lookup = lookup
        self.coalesce = coalesce
        self.deliver = deliver
        self.put = put
        self.publish = publish
        self.progress = progress
        self.wanted = wanted
        self.tagging = tagging
        self.retrying = retrying
        self.tracing = tracing
        self.metrics = metrics
        self.log = log
    }

    /// Does one job, from its record to its published event.
    func run(_ taken: TakenRecord) async {
        let trace = tracing?.begin(taken.record)
        let work: Work
        do throws(JobRefusal) {
            work = try read(taken.record, trace)
        } catch {
            return await refuse(taken, error, trace)
        }
        let outcome = await Trials(line: self, work: work, taken: taken).run()
        if case .handedBack = outcome { return handBack(taken, work.trace) }
        // Whatever comes of it is told by this worker or by another: a job that was recalled may have failed for that alone.
        guard taken.begin() else { return handBack(taken, work.trace) }
        do throws(KafkaError) {
            work.trace?.publishing(to: publish.destination(of: outcome))
            let told = try await publish.tell(work, outcome, taken)
            work.trace?.end(JobEnd(told))
            report(work, told)
        } catch {
            notTold(error, taken, work.trace)
        }
    }

    private func refuse(_ taken: TakenRecord, _ refusal: JobRefusal, _ trace: JobTrace?) async {
        guard taken.begin() else { return handBack(taken, trace) }
        do throws(KafkaError) {
            trace?.publishing(to: publish.topics.events)
            try await publish.refused(taken, refusal, trace)
            trace?.end(.refused(refusal.failure.code))
            metrics.refused(refusal.failure.code, intake.lane(of: taken.record))
            log.warning(
                "job refused",
                [
                    "job": refusal.id, "source": refusal.source?.loggedURL, "code": refusal.failure.code.rawValue,
                    "reason": refusal.failure.message,
                ])
        } catch {
            notTold(error, taken, trace)
        }
    }

    private func notTold(_ error: KafkaError, _ taken: TakenRecord, _ trace: JobTrace?) {
        if error.code == .illegalGeneration {
            log.info("a job is told of by another worker: its partition has gone", ["reason": error.message])
        } else {
            log.error("event not published: the worker is closed", ["error": "\(error)"])
        }
        handBack(taken, trace)
    }

    private func handBack(_ taken: TakenRecord, _ trace: JobTrace?) {
        taken.handBack()
        trace?.end(.handedBack)
    }

    private func read(_ record: ConsumedRecord, _ trace: JobTrace?) throws(JobRefusal) -> Work {
        let (work, unknownFields) = try intake.read(record, trace)
        trace?.describe(work)
        if !unknownFields.isEmpty {
            metrics.unknownFields.add(unknownFields.count)
            log.info("unknown fields ignored", fields(of: work, ["fields": work.warnings]))
        }
        return work
    }

    /// One trip of a job down the line, to its end.
    /// - Throws: ``Failure``; ``Detachment`` or `CancellationError` when it is taken off the line.
    /// - Parameter number: which attempt it is, from 1.
    func attempt(_ work: Work, _ taken: TakenRecord, number: Int) async throws -> Ready {
        let identity = work.identity
        try await wanted.begin(identity)
        let found = try await lookup.find(work)
        metrics.lookedUp(work, found)
        let ready = try await ready(work, identity, found, taken, number)
        if let slot = identity.slot { try await wanted.check(slot) }
        return ready
    }

    private func ready(
        _ work: Work, _ identity: JobIdentity, _ found: [ResultKey: ReadyResult], _ taken: TakenRecord, _ attempt: Int
    ) async throws -> Ready {
        if !work.job.delivery.isPut, work.missing(from: found).isEmpty {
            let results = work.keys.compactMap { found[$0] }
            await tagging.enter(results, of: work)
            return Ready(results: results, origin: .memory, timings: Timings())
        }
        return try await wanted.underWay.run(identity, until: work.deadlineInstant) { [self] job in
            taken.onRecall { job.detach(.recalled) }
            // Between the claim and this moment nobody could have told the job of a newer one.
            if let slot = identity.slot { try await wanted.check(slot) }
            let marks = await tagging.marks(of: work)
            let ready = try await put.run(
                Completion(line: self, work: work, taken: taken, attempt: attempt).run(found), of: work)
            await tagging.enter(ready.results, of: work, since: marks)
            return ready
        }
    }

    /// A job failed, and this worker tries it again.
    func willRetry(_ work: Work, _ failed: FailedJob, after seconds: Double) {
        metrics.retried(failed.failure.code, .process)
        log.debug("job tried again", fields(of: work, failed.fields.merging(["after": seconds])))
    }

    private func report(_ work: Work, _ outcome: Outcome) {
        switch outcome {
        case .handedBack: break
        case .postponed(let failed, let topic, let seconds):
            metrics.retried(failed.failure.code, .topic)
            let more: LogFields = ["through": publish.topics.retries[topic], "after": seconds]
            log.info("job tried again later", fields(of: work, failed.fields.merging(more)))
        case .gaveUp(let failed, let reason):
            metrics.ended(failed.body, work.lane)
            if failed.isPutAside(reason) { metrics.putAside(failed.failure.code) }
            log.info("job failed", fields(of: work, failed.fields.merging(["given_up": reason.rawValue])))
        case .ended(let body):
            metrics.ended(body, work.lane)
            switch body {
            case .ready(let ready):
                log.debug(
                    "job ready", fields(of: work, ["origin": ready.origin.rawValue, "ms": ready.timings[.total]]))
            case .failed(let failure, _, _):
                log.info("job failed", fields(of: work, ["code": failure.code.rawValue, "reason": failure.message]))
            case .cancelled: log.debug("job cancelled", fields(of: work, [:]))
            case .superseded(let generation):
                log.debug("job superseded", fields(of: work, ["by": Int(generation)]))
            case .started, .progress, .purged: break
            }
        }
    }

    /// What every line about a job carries, and then `more`.
    private func fields(of work: Work, _ more: LogFields) -> LogFields {
        let trace = (work.trace?.context ?? work.traceparent.flatMap { TraceContext(traceparent: $0) })?.traceID
        let common: LogFields = [
            "job": work.job.id, "source": work.job.source.shownText.loggedURL, "key": work.keys[0].description,
            "trace": trace,
        ]
        return common.merging(more)
    }
}

extension FailedJob {
    fileprivate var fields: LogFields {
        ["code": failure.code.rawValue, "reason": failure.message, "attempts": history.count]
    }
}
