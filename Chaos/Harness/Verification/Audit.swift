/// Checks the ledger against the delivery guarantees. It is pure, so that it can be tested with synthetic data.
public struct Audit: Sendable {
    /// The delivery guarantee for terminal events.
    public enum Mode: String, CaseIterable, Sendable {
        /// A terminal event may be repeated after a fault, with the same id.
        case atLeastOnce = "at-least-once"
        /// A terminal event is published once.
        case exactlyOnce = "exactly-once"
    }

    /// The guarantee of the run.
    public let mode: Mode
    /// Records without a terminal event.
    public let lost: [SentJob]
    /// Records with more than one terminal event.
    public let toldAgain: [(job: SentJob, ends: [TerminalEvent])]
    /// The ones whose terminal events have different outcomes.
    public let severalEnds: [(job: SentJob, ends: [TerminalEvent])]
    /// The ones whose terminal events have different ids, so that a consumer cannot recognize the duplicate.
    public let unrecognised: [(job: SentJob, ends: [TerminalEvent])]
    /// Records with an outcome that is not allowed.
    public let otherwise: [(job: SentJob, ends: [TerminalEvent])]
    /// Records that were ready before they were to start.
    public let early: [SentJob]
    /// Events about records whose position was never acknowledged.
    public let unknown: [TerminalEvent]
    /// The maximum number of such records: records that were sent and never acknowledged.
    public let unsure: Int
    /// Records whose events have another image than most events about the same image.
    public let wrongImages: [(job: SentJob, ends: [TerminalEvent])]
    /// The check of the number of fetches.
    public let fetches: FetchAudit
    /// The recovery time of each fault: the time from its end until all jobs that had been sent by then have ended.
    public let recoveries: [(fault: FaultRecord, seconds: Double)]
    /// The slowest jobs, from sending to event.
    public let slowest: [(job: SentJob, seconds: Double)]

    /// Checks the ledger after the system has become idle.
    /// - Parameters:
    ///   - unsure: The number of records that were sent in addition to `sent` and may have been accepted.
    ///   - requests: The number of requests for each path, from the origin's log.
    public init(
        mode: Mode, sent: [SentJob], unsure: Int = 0, ends: [TerminalEvent], faults: [FaultRecord],
        requests: [String: Int]
    ) {
        self.mode = mode
        self.unsure = unsure
        let told = Dictionary(grouping: ends, by: \.place)
        let places = Set(sent.map(\.place))
        let firsts = told.mapValues { $0.map(\.at).min()! }
        // The requests of a frozen worker to the store time out, which opens its circuit breaker.
        let outages = faults.filter { $0.hitsRedis || $0.kind.hitsStore || $0.kind == .freeze }
        var newest: [String: Int] = [:]
        for job in sent { if let slot = job.slot { newest[slot] = max(newest[slot] ?? 0, job.generation) } }

        lost = sent.filter { told[$0.place] == nil }
        unknown = ends.filter { !places.contains($0.place) }
        toldAgain = sent.compactMap { job in told[job.place].flatMap { $0.count > 1 ? (job, $0) : nil } }
        severalEnds = toldAgain.filter { Set($0.ends.map(\.end)).count > 1 }
        unrecognised = toldAgain.filter { Set($0.ends.map(\.id)).count > 1 }
        otherwise = sent.compactMap { job in
            // The last job of a display slot cannot be superseded.
            let isLast = job.slot.map { newest[$0] == job.generation } ?? false
            var allowed = isLast ? job.allowed.subtracting(["superseded"]) : job.allowed
            // Retries of a job that requires the store end while it is unavailable. The result is in Redis until then.
            if job.requiresStore, outages.contains(where: { $0.affects(from: job.at, to: firsts[job.place] ?? job.at) })
            {
                allowed.insert("failed/internal")
            }
            let wrong = (told[job.place] ?? []).filter { !allowed.contains($0.end) }
            return wrong.isEmpty ? nil : (job, wrong)
        }
        early = sent.filter { job in
            (told[job.place] ?? []).contains { $0.end == "ready" && $0.at < job.at + job.notBefore }
        }
        wrongImages = ImageAudit(sent: sent, ends: told).wrong
        fetches = FetchAudit(sent: sent, ends: firsts, faults: faults, requests: requests)
        recoveries = Self.recoveries(sent, firsts, faults)
        slowest = sent.compactMap { job in firsts[job.place].map { (job, $0 - job.at) } }.sorted { $0.1 > $1.1 }
            .prefix(3).map { (job: $0.0, seconds: $0.1) }
    }

    /// The violated guarantees, one sentence each.
    public var broken: [String] {
        var list: [String] = []
        if !lost.isEmpty { list.append("\(lost.count) jobs were lost") }
        if !otherwise.isEmpty { list.append("\(otherwise.count) jobs ended with an unexpected outcome") }
        if !unrecognised.isEmpty { list.append("\(unrecognised.count) jobs have terminal events with different ids") }
        if !early.isEmpty { list.append("\(early.count) jobs started too early") }
        if !wrongImages.isEmpty { list.append("\(wrongImages.count) jobs received a wrong image") }
        let strange = Set(unknown.map(\.place)).count
        if strange > unsure { list.append("\(strange - unsure) events refer to records that were never sent") }
        if !fetches.beyond.isEmpty { list.append("\(fetches.beyond.count) sources exceed their fetch bound") }
        if mode == .exactlyOnce && !toldAgain.isEmpty { list.append("\(toldAgain.count) jobs have duplicate events") }
        return list
    }

    /// Returns the time from the end of each fault until all jobs that had been sent by then have ended.
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
