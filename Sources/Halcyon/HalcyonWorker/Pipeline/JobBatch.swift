import HalcyonCluster
import HalcyonCoding
import HalcyonModel
import Telemetry

extension JobPipeline {
    /// Runs the jobs of one poll. Their results are looked up in one pipelined call. Jobs whose results are all cached
    /// end together. Each of the others runs in its own task.
    /// - Parameter onEnd: A callback that is called once for each record, after its processing has ended.
    func run(_ deliveries: [JobDelivery], onEnd: @escaping @Sendable (JobDelivery) -> Void) async {
        func start(_ delivery: JobDelivery, _ decoded: DecodedRecord, _ found: [ResultKey: ImageResult]? = nil) {
            Task {
                await run(delivery, decoded: decoded, found: found)
                onEnd(delivery)
            }
        }
        await cancellations.caughtUp()
        var jobs: [(delivery: JobDelivery, job: JobContext)] = []
        for delivery in deliveries {
            let decoded = decode(delivery.record)
            if case .job(let job) = decoded, job.isPlain, !cancellations.isCancelled(job.identity) {
                jobs.append((delivery, job))
            } else {
                start(delivery, decoded)
            }
        }
        if jobs.isEmpty { return }
        let found = await lookup.find(all: jobs.map(\.job))
        var hits: [CachedJob] = []
        for ((delivery, job), cached) in zip(jobs, found) {
            if let cached, var ready = job.ready(from: cached) {
                report.lookedUp(job, hits: cached.count)
                var attempts = JobAttempts(job)
                attempts.queued(job)
                attempts.begin()
                attempts.succeeded(&ready)
                hits.append(CachedJob(delivery: delivery, job: job, ready: ready))
            } else {
                start(delivery, .job(job), cached.map(job.byKey))
            }
        }
        await publish(hits, onEnd)
    }

    /// Publishes the events of jobs that hit the cache. If Kafka does not accept an event at once, it is published
    /// individually, like the events of other jobs.
    private func publish(_ hits: [CachedJob], _ onEnd: @escaping @Sendable (JobDelivery) -> Void) async {
        var claimed: [CachedJob] = []
        for (hit, isOurs) in zip(hits, JobDelivery.claim(hits.map(\.delivery))) {
            if isOurs {
                hit.job.trace?.publishing(to: publisher.topics.events)
                claimed.append(hit)
            } else {
                returnToQueue(hit.delivery, hit.job.trace)
                onEnd(hit.delivery)
            }
        }
        for (hit, error) in zip(claimed, await publisher.publish(claimed)) {
            let outcome = Outcome.ended(.ready(hit.ready))
            if error == nil {
                hit.job.trace?.end(JobSpanOutcome(outcome))
                report.ended(hit.job, outcome)
                batches.ended(hit.job, outcome)
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
    let delivery: JobDelivery
    let job: JobContext
    let ready: Ready
}

extension JobContext {
    /// A Boolean value that indicates whether the job needs only its cached results to end, if they exist. It has no
    /// display slot, tags, refresh, delay or deadline to check, its TTL policy extends no lifetime, its event carries no
    /// bytes, and it does not require the result store.
    fileprivate var isPlain: Bool {
        (retry?.isFirstAttempt ?? true) && job.slot == nil && job.tags.isEmpty && job.refresh == nil
            && job.notBefore == nil
            && job.deadline == nil && job.cache.looksAtResults && !job.cache.onlyIfCached
            && job.cache.store != .required && !job.delivery.isPut
            && !job.delivery.wantsBytes
            && !ResultTTLPolicy(maxAge: job.maxAge).canExtend
    }
}
