import HalcyonCluster
import HalcyonModel
import Redis
import Telemetry

/// Looks results up in the result cache.
struct LookupStage: Sendable {
    let results: ResultTier
    /// Bytes of all the files together that an event may carry.
    let inlineLimit: Int
    /// Those of Redis: what cannot be looked up is made again.
    let errors: ToleratedErrors

    /// Those that are there, by key, with their bytes when whoever delivers wants them, and they fit where that is the event.
    /// Each lives as long as the job's own rule says, where that is longer than it would.
    ///
    /// None when Redis is away: then the work is done again, which costs time and nothing else.
    /// - Throws: ``Failure`` `internal` when Redis is away and the job is content with what is there; `not_found` when it is, a
    ///   result is not there, and it does not want its source looked for either.
    func find(_ job: JobContext) async throws(Failure) -> [ResultKey: ReadyResult] {
        let keys = job.job.cache.looksAtResults ? job.keys : []
        guard job.job.cache.onlyIfCached else {
            return await errors.tolerating { try await look(for: keys, job) } ?? [:]
        }
        let found: [ResultKey: ReadyResult]
        do throws(RedisError) {
            found = try await look(for: keys, job)
        } catch {
            throw Failure(.internal, "whether the result is there cannot be told: Redis is away", cause: error)
        }
        guard job.job.cache.source || job.missing(from: found).isEmpty else {
            throw Failure(.notFound, "the result is not in the cache, and the job says cache.onlyIfCached")
        }
        return found
    }

    /// The cached results of several jobs, in one pipelined call, for jobs whose rules extend no lifetime and whose
    /// events carry no bytes.
    /// - Returns: one entry per job, in their order; nil while Redis is away.
    func find(all jobs: [JobContext]) async -> [[ResultKey: ReadyResult]?] {
        let keys = jobs.flatMap(\.keys)
        let names = keys.map(\.description)
        guard let found = await errors.tolerating({ try await results.find(names) }) else {
            return jobs.map { _ in nil }
        }
        var rest = found[...]
        return jobs.map { job in
            var ready: [ResultKey: ReadyResult] = [:]
            for key in job.keys {
                if let result = rest.removeFirst() { ready[key] = ReadyResult(key: key.description, result) }
            }
            if !ready.isEmpty { results.used(ready.keys.lazy.map(\.description), of: job.job.tenant) }
            return ready
        }
    }

    /// Those of these that are there now, after they were made for others.
    func refresh(_ keys: [ResultKey], _ job: JobContext) async -> [ResultKey: ReadyResult] {
        job.sharesResults ? await errors.tolerating { try await look(for: keys, job) } ?? [:] : [:]
    }

    /// Where the making of these stands in traces, for a job of which something is recorded.
    func makers(of keys: [ResultKey]) async -> [TraceContext] {
        keys.isEmpty ? [] : await errors.tolerating { try await results.makers(of: keys.map(\.description)) } ?? []
    }

    private func look(for keys: [ResultKey], _ job: JobContext) async throws(RedisError) -> [ResultKey: ReadyResult] {
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
    ) async throws(RedisError) -> [ResultKey: ReadyResult] {
        let rule = ResultRule(maxAge: job.job.maxAge)
        if keys.count == 1 {
            let key = keys[0].description
            guard var result = try await results.find(key, for: rule) else { return [:] }
            if rule.canExtend {
                guard let extended = try await results.extend(result, as: key, by: rule, of: job.job.tenant) else {
                    return [:]
                }
                result = extended
            }
            return [keys[0]: ReadyResult(key: key, result)]
        }
        var found: [ResultKey: ReadyResult] = [:]
        for (key, there) in zip(keys, try await results.find(keys.map(\.description), for: rule)) {
            guard let there, found[key] == nil,
                let result = try await results.extend(there, as: key.description, by: rule, of: job.job.tenant)
            else { continue }
            found[key] = ReadyResult(key: key.description, result)
        }
        return found
    }

    /// One may expire between the two questions: then it is not there.
    private func withBodies(_ found: [ResultKey: ReadyResult]) async throws(RedisError) -> [ResultKey: ReadyResult] {
        var carried: [ResultKey: ReadyResult] = [:]
        let keys = Array(found.keys)
        for (key, content) in zip(keys, try await results.read(keys.map(\.description))) {
            guard let content else { continue }
            carried[key] = ReadyResult(key: key.description, content.result, inline: content.body)
        }
        return carried
    }
}

extension ReadyResult {
    fileprivate init(key: String, _ found: ResultTier.Found, inline: [UInt8]? = nil) {
        self.init(key: key, facts: found.facts, expiresAt: found.expiresAt, inline: inline)
    }
}
