import HalcyonCluster
import HalcyonModel
import HalcyonResults
import Redis
import Telemetry

/// Keeps results in the persistent result store, and puts them back into Redis when it has evicted them. What is stored
/// there is a copy of what is in Redis, with the same expiry.
struct PersistStage: Sendable {
    let store: ResultStore
    let results: ResultCache
    /// The log and counter of Redis errors. A result that cannot be put back is rendered again.
    let errors: ToleratedErrors

    /// Puts a result back into Redis for the rest of its life, if the store has it.
    /// - Returns: True if it is in Redis now.
    func restore(_ key: ResultKey, of job: JobContext) async -> Bool {
        guard job.job.cache.looksAtResults, job.job.cache.store != .excluded, let found = await store.find(key) else {
            return false
        }
        return await errors.tolerating { try await results.restore(found) } ?? false
    }

    /// Puts several results back.
    /// - Returns: True if at least one of them is in Redis now.
    func restore(_ keys: [ResultKey], of job: JobContext) async -> Bool {
        var isRestored = false
        for key in Set(keys) where await restore(key, of: job) { isRestored = true }
        return isRestored
    }

    /// Writes a result that is in Redis now to the store, in the background. It waits while too much is being written.
    func persist(_ made: RenderedResult, _ life: ResultCache.StoredLife, of job: JobContext) async {
        guard job.job.cache.store != .excluded else { return }
        var result = StoredResult(
            key: made.key, tenant: job.job.tenant, body: made.image.body, metadata: made.facts,
            expiresAt: life.expiresAtMilliseconds, storedAt: life.storedAtMilliseconds, rule: life.rule,
            fence: Int64(made.fence), since: Int64(made.since))
        result.source = job.job.source
        // The work is cancelled if nobody waits for the result any more. It is in Redis.
        try? await store.writeBehind(result, tags: job.job.tags)
    }

    /// Writes a result again whose life in Redis a job has extended, with its entries under tags.
    /// - Parameter tags: The tags of the jobs that have made or hit it, as far as Redis knows them.
    func extend(_ key: ResultKey, tags: [String], of job: JobContext) async {
        guard job.job.cache.store != .excluded,
            let result = await errors.tolerating({ try await whole(key, of: job) }) ?? nil
        else { return }
        // A cancelled job does not wait for space in the queue. The shorter life remains.
        try? await store.extend(result, tags: job.job.tags)
        try? await store.index(key, under: tags, of: job.job.tenant, until: Double(result.expiresAt) / 1000)
    }

    /// Returns when the results are durable.
    /// - Throws: ``JobError`` `invalid_job` if a result may not be stored or does not fit, and a retryable `internal`
    ///   if it cannot be written or Redis has lost it; ``PostponedAttempt`` while the store is skipped after repeated
    ///   failures; `CancellationError`.
    func ensure(_ ready: [ImageResult], of job: JobContext) async throws {
        for result in ready {
            guard result.expiresAt != nil, let key = ResultKey(result.key) else {
                throw JobError(
                    .invalidJob,
                    "cache.store is \"required\", but the result is not stored: its origin forbids that, or it does "
                        + "not fit; set maxAge or remove the requirement")
            }
            guard let stored = try await required(key, of: job) else {
                throw JobError(
                    .internal, "the result was removed from Redis before it was in the result store", isRetryable: true)
            }
            do {
                try await store.ensure(stored, tags: job.job.tags)
            } catch let error as StorageError {
                // Another attempt would make the same result.
                guard error.kind != .tooLarge else {
                    throw JobError(
                        .invalidJob,
                        "cache.store is \"required\", but the result does not fit into the result store: \(error)")
                }
                let failure = JobError(
                    .internal, "the result could not be written to the result store: \(error)", isRetryable: true,
                    retryAfter: error.retryAfter.map { $0 / .seconds(1) })
                guard error.retryAfter == nil else { throw PostponedAttempt(failure: failure) }
                throw failure
            }
        }
    }

    /// Reads a result from Redis.
    private func whole(_ key: ResultKey, of job: JobContext) async throws(RedisError) -> StoredResult? {
        var result = try await results.whole(key, of: job.job.tenant)
        result?.source = job.job.source
        return result
    }

    private func required(_ key: ResultKey, of job: JobContext) async throws(JobError) -> StoredResult? {
        do throws(RedisError) {
            return try await whole(key, of: job)
        } catch {
            throw JobError(.internal, "the result could not be read from Redis", isRetryable: true, cause: error)
        }
    }

    /// Records that a job with tags has hit results, so that a purge of the tags reaches them in the store.
    func index(_ results: [ImageResult], of job: JobContext) async {
        guard job.job.cache.store != .excluded, !job.job.tags.isEmpty else { return }
        for result in results {
            guard let end = result.expiresAt, let key = ResultKey(result.key) else { continue }
            // A cancelled job does not wait for space in the queue.
            try? await store.index(key, under: job.job.tags, of: job.job.tenant, until: end)
        }
    }

    /// Deletes a result of this policy, which no longer allows storing it.
    func remove(_ key: ResultKey, by rule: ResultTTLPolicy) async {
        // A cancelled job does not wait for space in the queue. The result expires by itself.
        try? await store.remove(key, of: rule.name)
    }
}
