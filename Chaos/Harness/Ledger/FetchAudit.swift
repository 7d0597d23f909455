/// How often sources were asked for that live longer than the run: once each, and once more for what can cause it.
///
/// The bound of a source is 1, and
/// - for each fault within its time, the works that the fault can have cost: a worker that went or stood still while it made it,
///   a partition that moved in the middle of it;
/// - for each fault of Redis, the jobs for it that were under way, for workers without Redis work each for itself, and one more,
///   for what was kept may be gone;
/// - for each of its jobs that may have been given up (cancelled, superseded, expired), one: with the last who waits the transfer ends.
public struct FetchAudit: Sendable {
    /// How many sources there were.
    public let sources: Int
    /// Requests beyond one a source.
    public let extra: Int
    /// How many of these the faults explain.
    public let bound: Int
    /// Sources with more requests than their bound: path, requests, bound.
    public let beyond: [(source: String, requests: Int, bound: Int)]

    /// For how long after its end a fault may still cost something: a lease runs out, a group settles.
    static let echo = 20.0
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
            for fault in faults where fault.begin <= to && fault.end + Self.echo >= from {
                most += fault.disturbances
                if fault.hitsRedis {
                    most += lives.count { fault.begin <= $0.to && fault.end + Self.echo >= $0.from }
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
