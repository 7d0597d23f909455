import HalcyonCluster
import HalcyonModel
import Redis

/// Looks which results are there already.
struct Lookup: Sendable {
    let results: ResultTier
    /// Bytes of all the files together that an event may carry.
    let inlineLimit: Int

    /// Those that are there, by key, with their bytes when the job wants them in its event and they fit.
    ///
    /// None when Redis is away: then the work is done again, which costs time and nothing else.
    func find(_ work: Work) async -> [ResultKey: ReadyResult] {
        guard let found = try? await facts(of: work.keys), !found.isEmpty else { return [:] }
        guard work.job.delivery == .inline else { return found }
        let bytes = work.keys.reduce(0) { $0 + (found[$1]?.facts.bytes ?? 0) }
        guard bytes <= inlineLimit else { return found }
        return (try? await withBodies(Array(found.keys))) ?? [:]
    }

    private func facts(of keys: [ResultKey]) async throws(RedisError) -> [ResultKey: ReadyResult] {
        if keys.count == 1 {
            let key = keys[0].description
            guard let result = try await results.find(key) else { return [:] }
            return [keys[0]: ReadyResult(key: key, result)]
        }
        var found: [ResultKey: ReadyResult] = [:]
        for (key, result) in zip(keys, try await results.find(keys.map(\.description))) {
            if let result { found[key] = ReadyResult(key: key.description, result) }
        }
        return found
    }

    /// One may expire between the two questions: then it is not there.
    private func withBodies(_ keys: [ResultKey]) async throws(RedisError) -> [ResultKey: ReadyResult] {
        var found: [ResultKey: ReadyResult] = [:]
        for (key, content) in zip(keys, try await results.read(keys.map(\.description))) {
            guard let content else { continue }
            found[key] = ReadyResult(key: key.description, content.result, inline: content.body)
        }
        return found
    }
}

extension ReadyResult {
    fileprivate init(key: String, _ found: ResultTier.Found, inline: [UInt8]? = nil) {
        self.init(key: key, facts: found.facts, expiresAt: found.expiresAt, inline: inline)
    }
}
