import HalcyonCluster
import HalcyonModel
import Redis

/// Looks which results are there already.
struct Lookup: Sendable {
    let results: ResultTier
    /// Bytes of all the files together that an event may carry.
    let inlineLimit: Int

    /// Those that are there, by key, with their bytes when the job wants them in its event and they fit. Each lives as long as the
    /// job's own rule says, where that is longer than it would.
    ///
    /// None when Redis is away: then the work is done again, which costs time and nothing else.
    /// - Throws: ``Failure`` `internal` when Redis is away and the job wants no work done; `not_found` when it wants none done and
    ///   a result is not there.
    func find(_ work: Work) async throws(Failure) -> [ResultKey: ReadyResult] {
        guard work.job.cache.onlyIfCached else { return (try? await look(work)) ?? [:] }
        let found: [ResultKey: ReadyResult]
        do throws(RedisError) {
            found = try await look(work)
        } catch {
            throw Failure(.internal, "whether the result is there cannot be told: \(error)")
        }
        guard work.missing(from: found).isEmpty else {
            throw Failure(.notFound, "the result is not in the cache, and the job says cache.onlyIfCached")
        }
        return found
    }

    private func look(_ work: Work) async throws(RedisError) -> [ResultKey: ReadyResult] {
        guard work.job.cache.looksAtResults else { return [:] }
        let found = try await results(of: work)
        guard !found.isEmpty else { return [:] }
        results.used(found.keys.lazy.map(\.description), of: work.job.tenant)
        guard work.job.delivery == .inline else { return found }
        let bytes = work.keys.reduce(0) { $0 + (found[$1]?.facts.bytes ?? 0) }
        guard bytes <= inlineLimit else { return found }
        return try await withBodies(found)
    }

    private func results(of work: Work) async throws(RedisError) -> [ResultKey: ReadyResult] {
        let rule = ResultRule(maxAge: work.job.maxAge)
        if work.keys.count == 1 {
            let key = work.keys[0].description
            guard var result = try await results.find(key, for: rule) else { return [:] }
            if rule.canExtend {
                guard let extended = try await results.extend(result, as: key, by: rule, of: work.job.tenant) else {
                    return [:]
                }
                result = extended
            }
            return [work.keys[0]: ReadyResult(key: key, result)]
        }
        var found: [ResultKey: ReadyResult] = [:]
        for (key, there) in zip(work.keys, try await results.find(work.keys.map(\.description), for: rule)) {
            guard let there, found[key] == nil,
                let result = try await results.extend(there, as: key.description, by: rule, of: work.job.tenant)
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
