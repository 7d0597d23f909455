import HalcyonCluster
import HalcyonModel
import Redis
import Telemetry

/// Enters results under the tags of the jobs that made or found them. Jobs without tags have nothing to do with it.
struct Tagging: Sendable {
    let tags: TagIndex
    let purger: Purger
    let log: Log

    /// When the job's tags had been purged last before its work began; nil when that cannot be told.
    func marks(of work: Work) async -> TagIndex.Marks? {
        work.job.tags.isEmpty ? nil : try? await tags.marks(work.job.tags, of: work.job.tenant)
    }

    /// Enters results that are in the result tier. One whose tag was purged while it was made goes again.
    func enter(_ results: [ReadyResult], of work: Work, since marks: TagIndex.Marks? = nil) async {
        guard !work.job.tags.isEmpty else { return }
        for result in results {
            guard let expiresAt = result.expiresAt, let key = ResultKey(result.key) else { continue }
            do throws(RedisError) {
                let isGood = try await tags.enter(
                    result.key, until: expiresAt, under: work.job.tags, of: work.job.tenant, since: marks)
                if !isGood { _ = try await purger.run(Purge(.key(key), of: work.job.tenant)) }
            } catch {
                log.warning("result not entered under its tags", ["key": result.key, "error": "\(error)"])
            }
        }
    }
}
