import HalcyonCluster
import HalcyonModel
import HalcyonWire
import Telemetry

extension JobPipeline {
    /// Runs the jobs of one poll. Their results are looked up in one pipelined call; jobs whose results are all cached
    /// end together, and each of the others runs in a task of its own.
    /// - Parameter onEnd: called once for each record, when nothing more is done for it.
    func run(_ deliveries: [TakenRecord], onEnd: @escaping @Sendable (TakenRecord) -> Void) async {
        func start(_ delivery: TakenRecord, _ decoded: DecodedRecord, _ found: [ResultKey: ReadyResult]? = nil) {
            Task {
                await run(delivery, decoded: decoded, found: found)
                onEnd(delivery)
            }
        }
        await cancellations.control.caughtUp()
        var jobs: [(delivery: TakenRecord, job: JobContext)] = []
        for delivery in deliveries {
            let decoded = decode(delivery.record)
            if case .job(let job) = decoded, job.isPlain, !cancellations.activeJobs.isCancelled(job.identity) {
                jobs.append((delivery, job))
            } else {
                start(delivery, decoded)
            }
        }
        if jobs.isEmpty { return }
        let found = await lookup.find(all: jobs.map(\.job))
        var hits: [CachedJob] = []
        for ((delivery, job), results) in zip(jobs, found) {
            if let results, var ready = job.ready(from: results) {
                report.lookedUp(job, results)
                var attempts = JobAttempts(job)
                attempts.queued(job)
                attempts.begin()
                attempts.succeeded(&ready, job)
                hits.append(CachedJob(delivery: delivery, job: job, ready: ready))
            } else {
                start(delivery, .job(job), results)
            }
        }
        await publish(hits, onEnd)
    }

    /// Publishes the events of jobs that hit the cache. One that Kafka does not take at once goes the way of all
    /// others.
    private func publish(_ hits: [CachedJob], _ onEnd: @escaping @Sendable (TakenRecord) -> Void) async {
        var claimed: [CachedJob] = []
        for (hit, isOurs) in zip(hits, TakenRecord.begin(hits.map(\.delivery))) {
            if isOurs {
                hit.job.trace?.publishing(to: publisher.topics.events)
                claimed.append(hit)
            } else {
                handBack(hit.delivery, hit.job.trace)
                onEnd(hit.delivery)
            }
        }
        for (hit, error) in zip(claimed, await publisher.publish(claimed)) {
            let outcome = Outcome.ended(.ready(hit.ready))
            if error == nil {
                hit.job.trace?.end(JobEnd(outcome))
                report.ended(hit.job, outcome)
                onEnd(hit.delivery)
            } else {
                Task {
                    await publish(outcome, hit.job, hit.delivery)
                    onEnd(hit.delivery)
                }
            }
        }
    }
}

/// A job whose results are all cached.
struct CachedJob: Sendable {
    let delivery: TakenRecord
    let job: JobContext
    let ready: Ready
}

extension JobContext {
    /// Whether its end takes no more than its cached results, if there are any: it has no slot, tags, delay or deadline
    /// to be looked at, its rule extends no lifetime, and its event carries no bytes.
    fileprivate var isPlain: Bool {
        retry == nil && job.slot == nil && job.tags.isEmpty && job.deadline == nil && job.cache.looksAtResults
            && !job.cache.onlyIfCached && !job.delivery.isPut && !job.delivery.wantsBytes
            && !ResultRule(maxAge: job.maxAge).canExtend
    }
}
