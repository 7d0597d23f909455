/// Checks that each batch completed once, with counts that agree with the terminal events of its jobs. It is pure, so
/// that it can be tested with synthetic data.
public struct BatchCompletionAudit: Sendable {
    /// Batches without a completion event.
    public let incomplete: [String]
    /// Batches with more than one completion event.
    public let repeated: [String]
    /// Batches whose counts disagree with the events of their jobs, with the reason.
    public let miscounted: [(batch: String, reason: String)]
    /// The number of batches.
    public let count: Int

    /// Checks the ledger after the system has become idle.
    public init(sent: [SentJob], ends: [TerminalEvent], completions: [BatchCompletion]) {
        let told = Dictionary(grouping: ends, by: \.place)
        let completed = Dictionary(grouping: completions, by: \.batch)
        let batches = Dictionary(grouping: sent.filter { $0.batch != nil }) { $0.batch?.batch ?? "" }
        count = batches.count
        incomplete = batches.keys.filter { completed[$0] == nil }.sorted()
        repeated = completed.filter { $0.value.count > 1 }.keys.sorted()
        miscounted = batches.sorted { $0.key < $1.key }.compactMap { batch, jobs in
            guard let counts = completed[batch]?.first?.counts else { return nil }
            // A job that was sent again, or told again after a fault, counts with one of its outcomes.
            let outcomes = Dictionary(grouping: jobs) { $0.batch?.index }.values.map { records -> Set<String> in
                let ends = records.flatMap { told[$0.place] ?? [] }
                return Set(ends.map { String($0.end.prefix { $0 != "/" }) })
            }
            let total = counts.values.reduce(0, +)
            if total != outcomes.count { return (batch, "\(total) jobs counted, \(outcomes.count) were sent") }
            for (outcome, found) in counts.sorted(by: { $0.key < $1.key }) {
                let certain = outcomes.count { $0 == [outcome] }
                let possible = outcomes.count { $0.contains(outcome) }
                if !(certain...possible).contains(found) {
                    return (batch, "\(found) jobs counted as \(outcome), events tell \(certain) to \(possible)")
                }
            }
            return nil
        }
    }

    /// The violated guarantees, one sentence each.
    public var broken: [String] {
        var list: [String] = []
        if !incomplete.isEmpty { list.append("\(incomplete.count) batches did not complete") }
        if !repeated.isEmpty { list.append("\(repeated.count) batches completed more than once") }
        if !miscounted.isEmpty { list.append("\(miscounted.count) batches have wrong counts") }
        return list
    }
}
