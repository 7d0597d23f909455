import HalcyonCluster
import HalcyonModel
import Redis
import Telemetry

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
