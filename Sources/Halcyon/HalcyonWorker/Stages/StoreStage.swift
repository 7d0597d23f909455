import Concurrency
import Formats
import HalcyonCluster
import HalcyonCoding
import HalcyonImaging
import HalcyonModel
import Kafka
import Redis
import Telemetry

/// Stores results where their consumers find them: in the result cache for their TTL, and otherwise in the event itself
/// or under a key that only the event names. The same rules apply to each variant.
struct StoreStage: Sendable {
    let results: ResultCache
    /// The persistent result store; nil if there is none.
    let persist: PersistStage?
    let options: ResultOptions
    let log: Log
    let metrics: StoreMetrics
    /// The log and counter of failed removals. A result that is not removed stays until it expires.
    let errors: ToleratedErrors

    /// Stores a result in the cache, by the TTL policy of the job that started its rendering, for all jobs that wait
    /// for it.
    /// - Returns: The result with the outcome, or nil if a newer result is stored or it has been purged in the
    ///   meantime.
    func store(_ made: RenderedResult, of job: JobContext) async -> RenderedResult? {
        let rule = ResultTTLPolicy(maxAge: job.job.maxAge)
        var (kept, stopwatch) = (made, Stopwatch())
        guard let lifetime = await lifetime(of: made, job, rule) else { return kept }
        do throws(RedisError) {
            let life = try await keepTrying(untilDone: false) { () throws(RedisError) in
                try await results.store(
                    made.image.body, made.facts, as: made.key.description, for: lifetime, by: rule, of: job.job.tenant,
                    fence: made.fence, since: made.since, maker: made.maker)
            }
            guard let life else { return nil }
            kept.storing = .stored(until: life.expiresAt)
            metrics.stored.add(made.image.body.count)
            await persist?.persist(kept, life, of: job)
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

    /// Delivers the results that were rendered for a job or while it waited.
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
            results: job.named(results), failures: resolved.namedFailures, origin: resolved.origin, timings: timings)
    }

    /// Delivers rendered results to a job concurrently.
    ///
    /// - Parameter found: The cached results. If an event cannot carry all of its files, it carries none.
    /// - Throws: ``JobError`` `internal` if Redis rejects an image that is too large for an event; `CancellationError`
    ///   if the worker is shutting down. In both cases the other results are not published.
    func deliver(
        _ made: [RenderedResult], beside found: [ResultKey: ImageResult], _ job: JobContext
    ) async throws -> [ResultKey: ImageResult] {
        let fits = job.job.delivery.isPut || bytesToCarry(made, beside: found, job) <= options.inlineLimit
        var results = found
        if !fits { for key in found.keys { results[key]?.inline = nil } }
        if made.count == 1 {
            results[made[0].key] = try await deliver(made[0], job, fits: fits)
            return results
        }
        return try await withThrowingTaskGroup(of: (ResultKey, ImageResult).self) { group in
            for output in made {
                group.addTask { (output.key, try await deliver(output, job, fits: fits)) }
            }
            for try await (key, result) in group { results[key] = result }
            return results
        }
    }

    /// Returns the total size of the files that the event would carry, in bytes. A file counts once for each variant
    /// that refers to it.
    private func bytesToCarry(_ made: [RenderedResult], beside found: [ResultKey: ImageResult], _ job: JobContext)
        -> Int
    {
        var bytes = Dictionary(uniqueKeysWithValues: made.map { ($0.key, $0.image.body.count) })
        if job.job.delivery.wantsBytes { for (key, result) in found { bytes[key] = result.facts.bytes } }
        return job.keys.reduce(0) { $0 + (bytes[$1] ?? 0) }
    }

    /// Delivers one result. While Redis is unavailable it waits. After a while the event carries the image, if it fits.
    /// - Parameter fits: True if the event can carry the image.
    private func deliver(_ made: RenderedResult, _ job: JobContext, fits: Bool) async throws -> ImageResult {
        let body = made.image.body
        let name = made.key.description
        func result(_ key: String, _ expiresAt: Double?, _ inline: [UInt8]?) -> ImageResult {
            ImageResult(key: key, facts: made.facts, expiresAt: expiresAt, inline: inline)
        }
        let asked = fits && job.job.delivery.wantsBytes ? body : nil
        // A result that must be in the result store must be in Redis first.
        let isRequired = job.job.cache.store == .required
        switch made.storing {
        case .stored(let expiresAt): return result(name, expiresAt, asked)
        case .failed where fits && !isRequired: return result(name, nil, body)
        case .failed, .none: break
        }
        let rule = ResultTTLPolicy(maxAge: job.job.maxAge)
        let lifetime = await lifetime(of: made, job, rule)
        if lifetime == nil, fits { return result(name, nil, body) }
        do {
            if let lifetime {
                let stored = try await keepTrying(untilDone: !fits || isRequired) { () throws(RedisError) in
                    try await results.store(
                        body, made.facts, as: name, for: lifetime, by: rule, of: job.job.tenant, fence: made.fence,
                        since: made.since, maker: made.maker, tags: job.job.tags)
                }
                if let stored {
                    metrics.stored.add(body.count)
                    await persist?.persist(made, stored, of: job)
                    return result(name, stored.expiresAt, asked)
                }
                // A newer result is stored under the key.
                if isRequired {
                    throw JobError(.internal, "the result was replaced or purged while it was made", isRetryable: true)
                }
                if fits { return result(name, nil, body) }
            }
            let key = ResultCache.handOffKey(for: made.key)
            let expiresAt = try await keepTrying(untilDone: !fits) { () throws(RedisError) in
                try await results.storeOnce(body, made.facts, as: key, for: options.handOffLifetime)
            }
            metrics.handedOff.add(body.count)
            return result(key, expiresAt, asked)
        } catch let error as RedisError {
            switch error.code {
            case .cancelled, .closed: throw CancellationError()
            case _ where fits && !isRequired:
                log.warning("result not stored; delivering it in its event", ["key": name, "error": "\(error)"])
                return result(name, nil, body)
            default: throw JobError(.internal, "the result could not be stored in Redis", cause: error)
            }
        }
    }

    /// Returns the seconds for which a result is stored, or nil if it is not stored. If the job's TTL policy says so, a
    /// result that the same policy stored before is removed.
    private func lifetime(of made: RenderedResult, _ job: JobContext, _ rule: ResultTTLPolicy) async -> Double? {
        guard job.job.cache.memory else { return nil }
        let seconds = rule.seconds(
            of: ResultTTL(maxAge: job.job.maxAge, headers: made.headers, completedAt: made.completedAt),
            age: Timestamp.now.seconds - made.completedAt, standard: options.defaultLifetime,
            cut: options.jitter > 0 ? .random(in: 0...options.jitter) : 0)
        guard let seconds else {
            // A policy that never stores has not set any TTL.
            if rule != .never {
                await errors.tolerating {
                    try await results.remove(made.key.description, by: rule, of: job.job.tenant)
                }
                await persist?.remove(made.key, by: rule)
            }
            return nil
        }
        return results.canHold(made.facts) ? seconds : nil
    }

    /// Retries while the error is transient, until the configured time has passed or, with `untilDone`, until it
    /// succeeds.
    private func keepTrying<Outcome>(
        untilDone: Bool, _ store: () async throws(RedisError) -> Outcome
    ) async throws(RedisError) -> Outcome {
        let giveUpAt = ContinuousClock.now + options.storeTimeout
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

/// The counters of bytes stored in Redis.
struct StoreMetrics: Sendable {
    /// The bytes of shared results.
    let stored: Counter
    /// The bytes of results that are handed to a single job.
    let handedOff: Counter

    init(_ metrics: Metrics) {
        func bytes(_ kind: String) -> Counter {
            metrics.counter(
                "halcyon_stored_bytes_total",
                help: "Bytes of images stored in Redis, as shared results or as hand-offs to a single job.",
                labels: ["as": kind])
        }
        (stored, handedOff) = (bytes("result"), bytes("handoff"))
    }
}

/// Indexes results under the tags of the jobs that rendered or found them, and removes those whose tags or tenant were
/// purged meanwhile. Jobs without tags and tenant skip it.
struct TagIndexer: Sendable {
    let tags: TagIndex
    let persist: PersistStage?
    let purger: Purger
    let log: Log
    /// The log and counter of failed purge lookups. A result whose tag is purged in the meantime may then remain.
    let errors: ToleratedErrors

    /// Returns the purge versions of the job's tags and tenant before its work starts, or nil if they cannot be read.
    func versions(of job: JobContext) async -> TagIndex.TagVersions? {
        job.job.tags.isEmpty && job.job.tenant == nil
            ? nil : await errors.tolerating { try await tags.marks(job.job.tags, of: job.job.tenant) }
    }

    /// Indexes results in the result cache. A result whose tag was purged during rendering is removed.
    func index(_ results: [ImageResult], of job: JobContext, since marks: TagIndex.TagVersions? = nil) async {
        guard !job.job.tags.isEmpty || marks != nil else { return }
        for result in results {
            guard let expiresAt = result.expiresAt, let key = ResultKey(result.key) else { continue }
            do throws(RedisError) {
                let isGood = try await tags.index(
                    result.key, until: expiresAt, under: job.job.tags, of: job.job.tenant, since: marks)
                if !isGood { _ = try await purger.run(Purge(.key(key), of: job.job.tenant)) }
            } catch {
                log.warning("failed to add result to the tag index", ["key": result.key, "error": "\(error)"])
            }
        }
        await persist?.index(results, of: job)
    }
}

/// Adds jobs to the index of their preset, so that their results can be made again. Jobs without a preset skip it.
struct PresetIndexer: Sendable {
    let index: PresetIndex
    /// The log and counter of jobs that could not be added.
    let errors: ToleratedErrors

    /// Adds a job with results in the result cache.
    /// - Parameter record: The record of the job.
    func index(_ results: [ImageResult], of job: JobContext, _ record: ConsumedRecord) async {
        guard let preset = job.job.preset, index.isEnabled, job.isOwnSource,
            let expiresAt = results.compactMap(\.expiresAt).max(), !job.job.hasPassword,
            let repetition = JobBuilder(repeating: record.value ?? [])
        else { return }
        await errors.tolerating {
            try await index.add(repetition.json, to: preset.name, until: expiresAt)
        }
    }
}

extension Job {
    /// True if the URL of a source contains a password.
    fileprivate var hasPassword: Bool {
        ([source] + alternatives + [fallback].compactMap(\.self)).contains { $0.text.withoutCredentials != $0.text }
    }
}
