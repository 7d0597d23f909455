/// The summary of a run.
struct Summary {
    let audit: Audit
    let batches: BatchCompletionAudit
    /// The audit of the result store; nil if there is none.
    let store: StoreAudit?
    let ledger: Ledger
    let journal: WorkerLogCollector
    /// The maximum number of jobs that are listed for each violated guarantee.
    static let most = 20

    /// The lines of the summary. Violated guarantees are last.
    var lines: [String] {
        let sent = ledger.sent
        let kinds = Dictionary(grouping: sent, by: \.kind).map { "\($0) \($1.count)" }.sorted()
        let ends = Dictionary(grouping: ledger.ends, by: \.end).map { "\($0) \($1.count)" }.sorted()
        let faults = Dictionary(grouping: ledger.faults, by: \.kind.rawValue).map { "\($0) \($1.count)" }.sorted()
        let origins = Dictionary(grouping: ledger.ends.compactMap(\.origin), by: \.self)
            .map { "\($0) \($1.count)" }.sorted()
        var lines = [
            "mode                       \(audit.mode.rawValue)",
            "jobs                       \(sent.count): \(kinds.joined(separator: ", "))",
            "terminal events            \(ledger.ends.count): \(ends.joined(separator: ", "))",
            "origins                    \(origins.joined(separator: ", "))",
            "lost                       \(audit.lost.count)",
            "unexpected outcomes        \(audit.otherwise.count)",
            "duplicated terminal events \(audit.toldAgain.reduce(0) { $0 + $1.ends.count - 1 }) of "
                + "\(audit.toldAgain.count) jobs",
            "different outcomes         \(audit.severalEnds.count) jobs",
            "wrong images               \(audit.wrongImages.count) jobs",
            "events of unknown jobs     \(audit.unknown.count); \(audit.unsure) were sent without acknowledgement",
            "extra fetches              \(audit.fetches.extra) of \(audit.fetches.sources) sources "
                + "(bound \(audit.fetches.bound)); \(audit.fetches.beyond.count) sources exceed their bound",
            "faults                     \(ledger.faults.count): \(faults.joined(separator: ", "))",
        ]
        if hasBatches {
            lines.append(
                "batches                    \(batches.count): \(batches.incomplete.count) incomplete, "
                    + "\(batches.repeated.count) completed more than once, \(batches.miscounted.count) miscounted")
        }
        if let store {
            lines.append(
                "result store               \(store.found) of \(store.sought) results found; "
                    + "\(store.missing.count) required ones missing, \(store.wrong.count) wrong images")
        }
        if let slowest = audit.recoveries.max(by: { $0.seconds < $1.seconds }) {
            lines.append("slowest recovery           \(seconds(slowest.seconds)) after \(slowest.fault.description)")
        }
        for slow in audit.slowest {
            lines.append("slow job                   \(seconds(slow.seconds)): \(describe(slow.job))")
        }
        if !ledger.drains.isEmpty { lines.append("drains                     \(drains)") }
        for error in journal.errors.prefix(Self.most) {
            lines.append("worker error, \(error.count) times: \(error.message); first: \(error.first)")
        }
        lines += journal.ends.prefix(Self.most)
        return lines + named
    }

    /// True if jobs were sent in batches. Each scenario closes them.
    var hasBatches: Bool { batches.count > 0 }

    /// The shutdown times of workers.
    var drains: String {
        let times = ledger.drains.map(\.took).sorted()
        guard let slowest = times.last else { return "none" }
        return "\(times.count), median \(seconds(times[times.count / 2])), slowest \(seconds(slowest)), "
            + "\(ledger.drains.count { !$0.isClean }) not clean"
    }

    /// The jobs with violated or nearly violated guarantees, with all details.
    private var named: [String] {
        var lines: [String] = []
        func name(_ title: String, _ jobs: [(job: SentJob, ends: [TerminalEvent])], most: Int = Self.most) {
            for (job, ends) in jobs.prefix(most) {
                let told = ends.map { "\($0.end) at \(seconds($0.at)) as \($0.id) \($0.message)" }
                lines.append(
                    "\(title): \(describe(job)); events: \(told.isEmpty ? "none" : told.joined(separator: " | "))")
            }
        }
        name("LOST", audit.lost.map { ($0, []) })
        name("UNEXPECTED OUTCOME", audit.otherwise)
        name("WRONG IMAGE", audit.wrongImages)
        if hasBatches {
            for batch in batches.incomplete.prefix(Self.most) { lines.append("INCOMPLETE BATCH: \(batch)") }
            for batch in batches.repeated.prefix(Self.most) { lines.append("REPEATED BATCH: \(batch)") }
            for (batch, reason) in batches.miscounted.prefix(Self.most) {
                lines.append("MISCOUNTED: \(batch): \(reason)")
            }
        }
        for (title, results) in [("MISSING RESULT", store?.missing ?? []), ("WRONG RESULT", store?.wrong ?? [])] {
            for (job, key) in results.prefix(Self.most) { lines.append("\(title): \(key) of \(describe(job))") }
        }
        // At-least-once delivery allows it, so only a few examples are shown.
        name("DIFFERENT OUTCOMES", audit.severalEnds, most: audit.mode == .exactlyOnce ? Self.most : 2)
        name("DIFFERENT IDS", audit.unrecognised)
        if audit.mode == .exactlyOnce { name("DUPLICATE", audit.toldAgain) }
        if audit.unknown.count > audit.unsure {
            for event in audit.unknown.prefix(Self.most) { lines.append("UNKNOWN: \(event)") }
        }
        for source in audit.fetches.beyond.prefix(Self.most) {
            let jobs = ledger.sent.filter { $0.source == source.source }.map { "\($0.id) at \(seconds($0.at))" }
            lines.append(
                "FETCHED: \(source.source) \(source.requests) times, at most \(source.bound); "
                    + "for \(jobs.joined(separator: ", "))"
            )
        }
        return lines
    }

    private func describe(_ job: SentJob) -> String {
        let end = ledger.ends.filter { $0.place == job.place }.map(\.at).max() ?? .infinity
        let faults = ledger.faults.filter { $0.begin <= min(end, job.at + 60) && $0.end + 5 >= job.at }.map(
            \.description)
        return
            "\(job.id) \(job.place) for \(job.source ?? "-")\(job.slot.map { " slot \($0)/\(job.generation)" } ?? "") "
            + "sent at \(seconds(job.at)), expected \(job.allowed.sorted().joined(separator: " or ")); "
            + "faults at that time: \(faults.isEmpty ? "none" : faults.joined(separator: ", "))"
    }
}
