import HalcyonCluster
import HalcyonModel
import Redis
import Telemetry

/// Looks results up in the result cache.
struct LookupStage: Sendable {
    let results: ResultCache
    let tags: TagIndex
    /// The persistent result store; nil if there is none.
    let persist: PersistStage?
    /// The maximum size of all files in an event together, in bytes.
    let inlineLimit: Int
    /// The log and counter of Redis errors. Results that cannot be looked up are rendered again.
    let errors: ToleratedErrors

    /// Returns the cached results by key. They include the bytes if the delivery needs them and, for delivery in the
    /// event, if they fit into it. The TTL of a result is extended to the TTL that the job requests, if that is longer.
    ///
    /// While Redis is unavailable no results are found, and the work is repeated.
    /// - Returns: The results, and where they come from: `store` if one of them was put back from the result store.
    /// - Throws: ``JobError`` `internal` if Redis is unavailable and the job accepts only cached results; `not_found`
    ///   if such a job also excludes cached sources and a result is missing.
    func find(_ job: JobContext) async throws(JobError) -> (found: [ResultKey: ImageResult], origin: CacheStatus) {
        let keys = job.job.cache.looksAtResults ? job.keys : []
        guard job.job.cache.onlyIfCached else {
            return (await errors.tolerating { try await look(for: keys, job) } ?? [:], .memory)
        }
        var (found, origin): ([ResultKey: ImageResult], CacheStatus) = ([:], .memory)
        do throws(RedisError) {
            found = try await look(for: keys, job)
            // Other jobs look into the result store in coalesced work, which this one does not take part in.
            if let persist, await persist.restore(job.missing(from: found).map { job.keys[$0] }, of: job) {
                found = try await look(for: keys, job)
                origin = .store
            }
        } catch {
            throw JobError(.internal, "cannot look up the result because Redis is unavailable", cause: error)
        }
        guard job.job.cache.source || job.missing(from: found).isEmpty else {
            throw JobError(.notFound, "the result is not in the cache, and the job has set cache.onlyIfCached")
        }
        return (found, origin)
    }

    /// Returns the cached results of several jobs, in one pipelined call, for jobs whose rules extend no TTL and whose
    /// events carry no bytes.
    /// - Returns: One entry per job, in their order: the results of its keys, nil for those that are missing. An entry
    ///   is nil while Redis is unavailable.
    func find(all jobs: [JobContext]) async -> [[ImageResult?]?] {
        let names = jobs.flatMap { $0.keys.map(\.description) }
        guard let found = await errors.tolerating({ try await results.find(names) }) else {
            return jobs.map { _ in nil }
        }
        var next = 0
        return jobs.map { job in
            let cached = job.keys.map { _ -> ImageResult? in
                defer { next += 1 }
                return found[next].map { ImageResult(key: names[next], $0) }
            }
            let used = cached.lazy.compactMap(\.self?.key)
            if !used.isEmpty { results.used(used, of: job.job.tenant) }
            return cached
        }
    }

    /// Returns the results that are cached now, after they were rendered for other jobs.
    func refresh(_ keys: [ResultKey], _ job: JobContext) async -> [ResultKey: ImageResult] {
        job.sharesResults ? await errors.tolerating { try await look(for: keys, job) } ?? [:] : [:]
    }

    /// Returns the trace contexts of the jobs that rendered these results, for a job that is traced.
    func makers(of keys: [ResultKey]) async -> [TraceContext] {
        keys.isEmpty ? [] : await errors.tolerating { try await results.makers(of: keys.map(\.description)) } ?? []
    }

    private func look(for keys: [ResultKey], _ job: JobContext) async throws(RedisError) -> [ResultKey: ImageResult] {
        if keys.isEmpty { return [:] }
        let found = try await results(keys, of: job)
        guard !found.isEmpty else { return [:] }
        results.used(found.keys.lazy.map(\.description), of: job.job.tenant)
        guard job.job.delivery.wantsBytes else { return found }
        let bytes = keys.reduce(0) { $0 + (found[$1]?.facts.bytes ?? 0) }
        guard job.job.delivery.isPut || bytes <= inlineLimit else { return found }
        return try await withBodies(found)
    }

    private func results(
        _ keys: [ResultKey], of job: JobContext
    ) async throws(RedisError) -> [ResultKey: ImageResult] {
        let rule = ResultTTLPolicy(maxAge: job.job.maxAge)
        if keys.count == 1 {
            let key = keys[0].description
            guard var result = try await results.find(key, for: rule) else { return [:] }
            if rule.canExtend {
                guard let extended = try await extend(result, keys[0], rule, job) else { return [:] }
                result = extended
            }
            return [keys[0]: ImageResult(key: key, result)]
        }
        var found: [ResultKey: ImageResult] = [:]
        for (key, there) in zip(keys, try await results.find(keys.map(\.description), for: rule)) {
            guard let there, found[key] == nil, let result = try await extend(there, key, rule, job) else { continue }
            found[key] = ImageResult(key: key.description, result)
        }
        return found
    }

    /// Extends the life of a result by the policy of a job, also in the indexes of its tags and in the result store.
    private func extend(
        _ result: ResultCache.Found, _ key: ResultKey, _ rule: ResultTTLPolicy, _ job: JobContext
    ) async throws(RedisError) -> ResultCache.Found? {
        let extended = try await results.extend(result, as: key.description, by: rule, of: job.job.tenant)
        guard let extended, extended.expiresAt > result.expiresAt else { return extended }
        let known = await errors.tolerating {
            try await tags.extend(key.description, until: extended.expiresAt, of: job.job.tenant)
        }
        await persist?.extend(key, tags: known ?? [], of: job)
        return extended
    }

    /// A result may expire between the two calls. It is then missing.
    private func withBodies(_ found: [ResultKey: ImageResult]) async throws(RedisError) -> [ResultKey: ImageResult] {
        var carried: [ResultKey: ImageResult] = [:]
        let keys = Array(found.keys)
        for (key, content) in zip(keys, try await results.read(keys.map(\.description))) {
            guard let content else { continue }
            carried[key] = ImageResult(key: key.description, content.result, inline: content.body)
        }
        return carried
    }
}

extension ImageResult {
    fileprivate init(key: String, _ found: ResultCache.Found, inline: [UInt8]? = nil) {
        self.init(key: key, facts: found.facts, expiresAt: found.expiresAt, inline: inline)
    }
}
