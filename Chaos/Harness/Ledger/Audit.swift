/// What the ledger's books say about the promises: pure, so that it can be tested with made-up books.
public struct Audit: Sendable {
    /// How often a job's end may be told.
    public enum Mode: String, CaseIterable, Sendable {
        /// Again after a fault, under the same id.
        case atLeastOnce = "at-least-once"
        /// Once.
        case exactlyOnce = "exactly-once"
    }

    /// Which of them was promised.
    public let mode: Mode
    /// Records that no event ended.
    public let lost: [SentJob]
    /// Records whose end was told more than once, with all that was told.
    public let toldAgain: [(job: SentJob, ends: [TerminalEvent])]
    /// Those of them that were told to have ended in different ways.
    public let severalEnds: [(job: SentJob, ends: [TerminalEvent])]
    /// Those whose ends were told under different ids, so that nobody can know the second for the first told again.
    public let unrecognised: [(job: SentJob, ends: [TerminalEvent])]
    /// Records that ended as they must not.
    public let otherwise: [(job: SentJob, ends: [TerminalEvent])]
    /// Events about records of which nobody was told where they lie.
    public let unknown: [TerminalEvent]
    /// How many such records there can be: they were sent, and it was never heard what became of them.
    public let unsure: Int
    /// How often sources were asked for.
    public let fetches: FetchAudit
    /// For how long after each fault's end a job had to wait that was there before.
    public let recoveries: [(fault: FaultRecord, seconds: Double)]
    /// The jobs that took longest from sending to event.
    public let slowest: [(job: SentJob, seconds: Double)]

    /// Looks through the books once nothing moves any more.
    /// - Parameters:
    ///   - unsure: how many records were sent besides `sent` that may have been taken.
    ///   - requests: how often each path was asked for, by the origin's own log.
    public init(
        mode: Mode, sent: [SentJob], unsure: Int = 0, ends: [TerminalEvent], faults: [FaultRecord],
        requests: [String: Int]
    ) {
        self.mode = mode
        self.unsure = unsure
        let told = Dictionary(grouping: ends, by: \.place)
        let places = Set(sent.map(\.place))
        var newest: [String: Int] = [:]
        for job in sent { if let slot = job.slot { newest[slot] = max(newest[slot] ?? 0, job.generation) } }

        lost = sent.filter { told[$0.place] == nil }
        unknown = ends.filter { !places.contains($0.place) }
        toldAgain = sent.compactMap { job in told[job.place].flatMap { $0.count > 1 ? (job, $0) : nil } }
        severalEnds = toldAgain.filter { Set($0.ends.map(\.end)).count > 1 }
        unrecognised = toldAgain.filter { Set($0.ends.map(\.id)).count > 1 }
        otherwise = sent.compactMap { job in
            // Of a slot's jobs nothing supersedes the last.
            let isLast = job.slot.map { newest[$0] == job.generation } ?? false
            let allowed = isLast ? job.allowed.subtracting(["superseded"]) : job.allowed
            let wrong = (told[job.place] ?? []).filter { !allowed.contains($0.end) }
            return wrong.isEmpty ? nil : (job, wrong)
        }
        let firsts = told.mapValues { $0.map(\.at).min()! }
        fetches = FetchAudit(sent: sent, ends: firsts, faults: faults, requests: requests)
        recoveries = Self.recoveries(sent, firsts, faults)
        slowest = sent.compactMap { job in firsts[job.place].map { (job, $0 - job.at) } }.sorted { $0.1 > $1.1 }
            .prefix(3).map { (job: $0.0, seconds: $0.1) }
    }

    /// The promises that were broken, a sentence each.
    public var broken: [String] {
        var list: [String] = []
        if !lost.isEmpty { list.append("\(lost.count) jobs were lost") }
        if !otherwise.isEmpty { list.append("\(otherwise.count) jobs ended as they must not") }
        if !unrecognised.isEmpty { list.append("\(unrecognised.count) jobs ended under more than one event id") }
        let strange = Set(unknown.map(\.place)).count
        if strange > unsure { list.append("\(strange - unsure) records that nobody sent have events") }
        if !fetches.beyond.isEmpty { list.append("\(fetches.beyond.count) sources were fetched beyond the bound") }
        if mode == .exactlyOnce && !toldAgain.isEmpty { list.append("\(toldAgain.count) jobs ended more than once") }
        return list
    }

    /// Of each fault: how long after its end the last job ended that had been sent before.
    private static func recoveries(
        _ sent: [SentJob], _ ends: [String: Double], _ faults: [FaultRecord]
    ) -> [(fault: FaultRecord, seconds: Double)] {
        let jobs = sent.sorted { $0.at < $1.at }
        var latest: [Double] = []
        for job in jobs { latest.append(max(latest.last ?? 0, ends[job.place] ?? 0)) }
        return faults.map { fault in
            var (low, high) = (0, jobs.count)
            while low < high {
                let middle = (low + high) / 2
                if jobs[middle].at <= fault.end { low = middle + 1 } else { high = middle }
            }
            return (fault, low == 0 ? 0 : max(0, latest[low - 1] - fault.end))
        }
    }
}
