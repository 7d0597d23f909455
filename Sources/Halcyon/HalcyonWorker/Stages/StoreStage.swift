import Formats
import HalcyonCluster
import HalcyonImaging
import HalcyonModel
import Redis
import Telemetry
import Threads

/// Puts results where their consumers find them: in the result tier for as long as they are fresh, and else in the event itself or
/// under a key that only the event names. Each variant is kept by the same rules.
struct StoreStage: Sendable {
    let results: ResultTier
    let options: ResultOptions
    let log: Log
    let metrics: StoreMetrics
    /// Those of removing what a rule no longer stores: it stays until it expires.
    let errors: ToleratedErrors

    /// Puts a result into the tier by the rule of the job that began its making, for all who wait for it.
    /// - Returns: what became of it; nil when something newer is there, or it has been purged meanwhile.
    func store(_ made: RenderedResult, of job: JobContext) async -> RenderedResult? {
        let rule = ResultRule(maxAge: job.job.maxAge)
        var (kept, stopwatch) = (made, Stopwatch())
        guard let lifetime = await lifetime(of: made, job, rule) else { return kept }
        do throws(RedisError) {
            let expiresAt = try await keepTrying(untilDone: false) { () throws(RedisError) in
                try await results.store(
                    made.image.body, made.facts, as: made.key.description, for: lifetime, by: rule, of: job.job.tenant,
                    fence: made.fence, since: made.since, maker: made.maker)
            }
            guard let expiresAt else { return nil }
            kept.storing = .stored(until: expiresAt)
            metrics.stored.add(made.image.body.count)
        } catch {
            if error.code != .cancelled, error.code != .closed {
                log.warning("result not stored", ["key": made.key.description, "error": "\(error)"])
            }
            kept.storing = .failed
        }
        let lap = stopwatch.lap()
        kept.timings[.store] = lap.milliseconds
        job.trace?.add(.store, lap)
        return kept
    }

    /// Delivers to a job what was rendered for it or while it waited.
    func deliver(_ resolved: ResolvedResults, _ job: JobContext) async throws -> Ready {
        var (timings, stopwatch) = (resolved.timings, Stopwatch())
        let made = Array(resolved.rendered.values)
        let results = try await deliver(made, beside: resolved.cached, job)
        let stored = stopwatch.lap()
        timings[.store] = (timings[.store] ?? 0) + stored.milliseconds
        if let trace = job.trace {
            trace.add(.lease, resolved.wait)
            // Results that were stored when they were rendered are not stored again.
            if !made.allSatisfy(\.isStored) { trace.add(.store, stored) }
        }
        return Ready(
            results: job.keys.compactMap { results[$0] }, failures: resolved.namedFailures, origin: resolved.origin,
            timings: timings)
    }

    /// Delivers to a job what was made for it or while it waited, side by side.
    ///
    /// - Parameter found: what is in the tier; an event that cannot carry all of its files carries none.
    /// - Throws: ``Failure`` `internal` when Redis refuses an image that is too large for an event; `CancellationError` when the
    ///   worker is leaving. Then nothing is told of the others.
    func deliver(
        _ made: [RenderedResult], beside found: [ResultKey: ReadyResult], _ job: JobContext
    ) async throws -> [ResultKey: ReadyResult] {
        let fits = job.job.delivery.isPut || bytesToCarry(made, beside: found, job) <= options.inlineLimit
        var results = found
        if !fits { for key in found.keys { results[key]?.inline = nil } }
        if made.count == 1 {
            results[made[0].key] = try await deliver(made[0], job, fits: fits)
            return results
        }
        return try await withThrowingTaskGroup(of: (ResultKey, ReadyResult).self) { group in
            for output in made {
                group.addTask { (output.key, try await deliver(output, job, fits: fits)) }
            }
            for try await (key, result) in group { results[key] = result }
            return results
        }
    }

    /// Bytes of the files that the event would have to carry, each as often as it has a variant with it.
    private func bytesToCarry(_ made: [RenderedResult], beside found: [ResultKey: ReadyResult], _ job: JobContext)
        -> Int
    {
        var bytes = Dictionary(uniqueKeysWithValues: made.map { ($0.key, $0.image.body.count) })
        if job.job.delivery.wantsBytes { for (key, result) in found { bytes[key] = result.facts.bytes } }
        return job.keys.reduce(0) { $0 + (bytes[$1] ?? 0) }
    }

    /// While Redis is away it waits, and after a while lets the event carry the image if it can.
    /// - Parameter fits: whether the event can carry the image.
    private func deliver(_ made: RenderedResult, _ job: JobContext, fits: Bool) async throws -> ReadyResult {
        let body = made.image.body
        let name = made.key.description
        func result(_ key: String, _ expiresAt: Double?, _ inline: [UInt8]?) -> ReadyResult {
            ReadyResult(key: key, facts: made.facts, expiresAt: expiresAt, inline: inline)
        }
        let asked = fits && job.job.delivery.wantsBytes ? body : nil
        switch made.storing {
        case .stored(let expiresAt): return result(name, expiresAt, asked)
        case .failed where fits: return result(name, nil, body)
        case .failed, .none: break
        }
        let rule = ResultRule(maxAge: job.job.maxAge)
        let lifetime = await lifetime(of: made, job, rule)
        if lifetime == nil, fits { return result(name, nil, body) }
        do throws(RedisError) {
            if let lifetime {
                let stored = try await keepTrying(untilDone: !fits) { () throws(RedisError) in
                    try await results.store(
                        body, made.facts, as: name, for: lifetime, by: rule, of: job.job.tenant, fence: made.fence,
                        since: made.since, maker: made.maker)
                }
                if let stored {
                    metrics.stored.add(body.count)
                    return result(name, stored, asked)
                }
                // Something newer has the key.
                if fits { return result(name, nil, body) }
            }
            let key = ResultTier.handOffKey(for: made.key)
            let expiresAt = try await keepTrying(untilDone: !fits) { () throws(RedisError) in
                try await results.handOff(body, made.facts, as: key, for: options.handOffLifetime)
            }
            metrics.handedOff.add(body.count)
            return result(key, expiresAt, asked)
        } catch {
            switch error.code {
            case .cancelled, .closed: throw CancellationError()
            case _ where fits:
                log.warning("result not stored, delivered in its event", ["key": name, "error": "\(error)"])
                return result(name, nil, body)
            default: throw Failure(.internal, "the result could not be stored in Redis", cause: error)
            }
        }
    }

    /// For how many seconds an output is stored; nil when it is not. Where the job's rule says that, what it stored before goes.
    private func lifetime(of made: RenderedResult, _ job: JobContext, _ rule: ResultRule) async -> Double? {
        guard job.job.cache.memory else { return nil }
        let seconds = rule.seconds(
            of: ResultLifetime(maxAge: job.job.maxAge, headers: made.headers, completedAt: made.completedAt),
            age: Timestamp.now.seconds - made.completedAt, standard: options.defaultLifetime,
            cut: options.jitter > 0 ? .random(in: 0...options.jitter) : 0)
        guard let seconds else {
            // Nothing has its expiry from a rule that never stores.
            if rule != .never {
                await errors.tolerating {
                    try await results.remove(made.key.description, by: rule, of: job.job.tenant)
                }
            }
            return nil
        }
        return results.canHold(made.facts) ? seconds : nil
    }

    /// Tries again while time mends the error: for as long as the options say, or until it is done.
    private func keepTrying<Outcome>(
        untilDone: Bool, _ store: () async throws(RedisError) -> Outcome
    ) async throws(RedisError) -> Outcome {
        let giveUpAt = ContinuousClock.now + options.patience
        var backoff = Backoff(initial: .milliseconds(50), maximum: .seconds(2))
        while true {
            do throws(RedisError) {
                return try await store()
            } catch {
                guard error.isRetriable, untilDone || .now < giveUpAt else { throw error }
            }
            do {
                try await Task.sleep(for: backoff.next())
            } catch {
                throw RedisError(.cancelled, "the task was cancelled")
            }
        }
    }
}

/// What is counted of the results that go to Redis.
struct StoreMetrics: Sendable {
    /// Bytes of results for all.
    let stored: Counter
    /// Bytes of results for one job alone.
    let handedOff: Counter

    init(_ metrics: Metrics) {
        func bytes(_ kind: String) -> Counter {
            metrics.counter(
                "halcyon_stored_bytes_total",
                help: "Bytes of images that Redis took: as results for all, or as hand-offs to one job alone.",
                labels: ["as": kind])
        }
        (stored, handedOff) = (bytes("result"), bytes("handoff"))
    }
}

/// Indexes results under the tags of the jobs that rendered or found them. Jobs without tags skip it.
struct TagIndexer: Sendable {
    let tags: TagIndex
    let purger: Purger
    let log: Log
    /// Those of reading purges: a result of a tag that is purged meanwhile may then stay.
    let errors: ToleratedErrors

    /// The latest purges of the job's tags before its work began; nil if they cannot be read.
    func versions(of job: JobContext) async -> TagIndex.Marks? {
        job.job.tags.isEmpty
            ? nil : await errors.tolerating { try await tags.marks(job.job.tags, of: job.job.tenant) }
    }

    /// Indexes results that are in the result cache. One whose tag was purged while it was rendered is removed.
    func index(_ results: [ReadyResult], of job: JobContext, since marks: TagIndex.Marks? = nil) async {
        guard !job.job.tags.isEmpty else { return }
        for result in results {
            guard let expiresAt = result.expiresAt, let key = ResultKey(result.key) else { continue }
            do throws(RedisError) {
                let isGood = try await tags.enter(
                    result.key, until: expiresAt, under: job.job.tags, of: job.job.tenant, since: marks)
                if !isGood { _ = try await purger.run(Purge(.key(key), of: job.job.tenant)) }
            } catch {
                log.warning("result not entered under its tags", ["key": result.key, "error": "\(error)"])
            }
        }
    }
}
