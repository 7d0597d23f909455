import HalcyonCluster
import HalcyonModel
import Redis

/// Looks whether the result is there already.
struct Lookup: Sendable {
    let results: ResultTier

    /// nil when it is not, or when Redis is away: then the work is done again, which costs time and nothing else.
    func find(_ work: Work) async -> ResultTier.Found? {
        // A result that must come in the event has to be read with its bytes; that is the rare case.
        try? await results.find(work.key.description)
    }

    /// The bytes of a result that was found; nil when it has gone since.
    func body(of work: Work) async -> [UInt8]? {
        try? await results.read(work.key.description)?.body
    }
}
