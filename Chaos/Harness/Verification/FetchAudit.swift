/// Checks the number of requests for sources that stay fresh longer than the run. A source is expected to be fetched
/// once, plus once for each event that can cause another fetch.
///
/// The bound of a source is 1, plus
/// - for each fault during its lifetime, the number of fetches that the fault can repeat: a worker crashed or was
///   frozen during a fetch, or a partition was reassigned;
/// - for each Redis fault, the number of its jobs in flight, because workers without Redis fetch independently, and one
///   more, because the cached source may be lost;
/// - for each of its jobs that may have been abandoned (cancelled, superseded, expired), one, because the transfer is
///   cancelled with its last waiter.
public struct FetchAudit: Sendable {
    /// The number of sources.
    public let sources: Int
    /// The number of requests in excess of one per source.
    public let extra: Int
    /// The number of excess requests that faults explain.
    public let bound: Int
    /// Sources with more requests than their bound: path, requests, bound.
    public let beyond: [(source: String, requests: Int, bound: Int)]

    private static let givenUp: Set = ["cancelled", "superseded", "failed/expired"]

    init(sent: [SentJob], ends: [String: Double], faults: [FaultRecord], requests: [String: Int]) {
        var (extra, bound) = (0, 0)
        var beyond: [(source: String, requests: Int, bound: Int)] = []
        let bySource = Dictionary(grouping: sent.filter { $0.source != nil }, by: { $0.source! })
        for (source, jobs) in bySource {
            let asked = requests[source] ?? 0
            let lives = jobs.map { (from: $0.at, to: ends[$0.place] ?? .infinity) }
            let (from, to) = (lives.map(\.from).min()!, lives.map(\.to).max()!)
            var most = 1 + jobs.count { !Self.givenUp.isDisjoint(with: $0.allowed) }
            for fault in faults where fault.affects(from: from, to: to) {
                most += fault.disturbances
                if fault.hitsRedis {
                    most += lives.count { fault.affects(from: $0.from, to: $0.to) }
                }
            }
            extra += max(0, asked - 1)
            bound += most - 1
            if asked > most { beyond.append((source, asked, most)) }
        }
        sources = bySource.count
        self.extra = extra
        self.bound = bound
        self.beyond = beyond.sorted { $0.requests - $0.bound > $1.requests - $1.bound }
    }
}
