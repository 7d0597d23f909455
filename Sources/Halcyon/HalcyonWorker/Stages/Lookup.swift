import HalcyonCluster
import HalcyonModel
import Redis

/// Looks whether the result is there already.
struct Lookup: Sendable {
    let results: ResultTier
    /// Bytes of the largest file that an event may carry.
    let inlineLimit: Int

    /// A result that is there, with its bytes when the job wants them in its event and they fit.
    struct Found: Sendable {
        let result: ResultTier.Found
        let inline: [UInt8]?
    }

    /// nil when it is not there, or when Redis is away: then the work is done again, which costs time and nothing else.
    func find(_ work: Work) async -> Found? {
        let key = work.key.description
        guard let result = try? await results.find(key) else { return nil }
        guard work.job.delivery == .inline, result.facts.bytes <= inlineLimit else {
            return Found(result: result, inline: nil)
        }
        // It may expire between the two questions: then it is not there.
        guard let (body, _) = try? await results.read(key) else { return nil }
        return Found(result: result, inline: body)
    }
}
