/// The first job of a partition takes for ever: what that does to those behind it, and to those of other partitions.
public struct HeadRun: Sendable {
    /// Makes a run and prints the times: jobs at a steady rate in all partitions, first alone, then behind such a head in one of them, in turns.
    /// - Returns: whether every promise was kept, that of the times among them.
    /// - Throws: when the servers of the run themselves fail.
    public static func run(_ options: ChaosRun.Options, seconds length: Int, turns: Int) async throws -> Bool {
        var plan = Ground.Plan()
        (plan.mode, plan.seed, plan.workers, plan.rate) = (options.mode, options.seed, 1, options.rate)
        plan.kinds = [.ordinary]
        (plan.books, plan.journal) = (options.books, options.journal)
        plan.settings = ["HALCYON_SOURCES_TIMEOUT": "1h"].merging(options.settings) { $1 }
        return try await Scenario.on(plan) { ground in
            _ = try await times(ground, jobs: plan.rate * 3)
            var (alone, beside): ([Double], [Double]) = ([], [])
            for turn in 0..<turns {
                alone += try await times(ground, jobs: plan.rate * length)
                let head = endless(ground, turn)
                try await ground.traffic.sendOne(head, to: 0)
                try await ground.traffic.burst(.hostile, count: 5)
                beside += try await times(ground, jobs: plan.rate * length, besides: 1)
                try await ground.traffic.cancel(head.id)
                try await ground.quiescence(within: options.patience, settling: .zero)
            }
            let ratio = percentile(beside, 0.99) / percentile(alone, 0.99)
            for (name, times) in [("alone", alone), ("behind and beside a head that takes for ever", beside)] {
                say(
                    "\(name): \(times.count) jobs, p50 \(milliseconds(percentile(times, 0.5))), "
                        + "p99 \(milliseconds(percentile(times, 0.99)))")
            }
            say("p99 behind and beside it is \(Double(Int(ratio * 100)) / 100) of p99 alone; at most 1.5 is promised")
            return ratio <= 1.5 ? [] : ["p99 was \(ratio) of p99 alone"]
        }
    }

    /// A job that does not end by itself.
    private static func endless(_ ground: Ground, _ turn: Int) -> DraftJob {
        let (id, source) = ("head-\(turn)", ground.origin.endless + "\(turn)")
        return DraftJob(
            id: id, kind: .slow, lane: .normal, json: #"{"id":"\#(id)","source":"\#(source)","width":40}"#,
            allowed: ["cancelled"])
    }

    /// Seconds from the sending to the event of so many ordinary jobs.
    /// - Parameter besides: how many others stay open.
    private static func times(_ ground: Ground, jobs: Int, besides: Int = 0) async throws -> [Double] {
        let ledger = ground.ledger
        let before = ledger.count
        try await ground.traffic.run(jobs: jobs)
        try await ground.idle(besides: besides)
        let ends = Dictionary(ledger.ends.map { ($0.place, $0.at) }) { first, _ in first }
        return ledger.sent.dropFirst(before).compactMap { job in ends[job.place].map { $0 - job.at } }
    }

    private static func percentile(_ values: [Double], _ part: Double) -> Double {
        let sorted = values.sorted()
        return sorted.isEmpty ? 0 : sorted[min(sorted.count - 1, Int(Double(sorted.count) * part))]
    }

    private static func milliseconds(_ seconds: Double) -> String { "\(Double(Int(seconds * 10_000)) / 10) ms" }
}
