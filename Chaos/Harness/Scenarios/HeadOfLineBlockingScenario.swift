/// A run that measures how a job that never ends affects the jobs behind it in its partition and those of other
/// partitions.
public struct HeadOfLineBlockingScenario: Sendable {
    /// Performs a run and prints the latencies. Jobs arrive at a steady rate in all partitions. Each round measures
    /// them first alone, then with an endless job at the head of one partition.
    /// - Returns: True if no guarantee was violated, including the latency bound.
    /// - Throws: An error if the servers of the test environment fail.
    public static func run(_ options: ChaosRun.Options, seconds length: Int, turns: Int) async throws -> Bool {
        var plan = ChaosEnvironment.Plan()
        (plan.mode, plan.seed, plan.workers, plan.rate) = (options.mode, options.seed, 1, options.rate)
        plan.kinds = [.ordinary]
        (plan.books, plan.journal) = (options.books, options.journal)
        plan.settings = ["HALCYON_SOURCES_TIMEOUT": "1h"].merging(options.settings) { $1 }
        return try await Scenario.on(plan) { [plan] environment in
            _ = try await times(environment, jobs: plan.rate * 3)
            var (alone, beside): ([Double], [Double]) = ([], [])
            for turn in 0..<turns {
                alone += try await times(environment, jobs: plan.rate * length)
                let head = endless(environment, turn)
                try await environment.traffic.sendOne(head, to: 0)
                try await environment.traffic.burst(.hostile, count: 5)
                beside += try await times(environment, jobs: plan.rate * length, besides: 1)
                try await environment.traffic.cancel(head.id)
                try await environment.quiescence(within: options.patience, settling: .zero)
            }
            let ratio = percentile(beside, 0.99) / percentile(alone, 0.99)
            for (name, times) in [("alone", alone), ("with an endless job at the head", beside)] {
                say(
                    "\(name): \(times.count) jobs, p50 \(milliseconds(percentile(times, 0.5))), "
                        + "p99 \(milliseconds(percentile(times, 0.99)))")
            }
            say("p99 with an endless job is \(Double(Int(ratio * 100)) / 100) times p99 alone; the limit is 1.5")
            return ratio <= 1.5 ? [] : ["p99 with an endless job was \(ratio) times p99 alone"]
        }
    }

    /// Creates a job that ends only when it is cancelled.
    private static func endless(_ environment: ChaosEnvironment, _ turn: Int) -> DraftJob {
        let (id, source) = ("head-\(turn)", environment.origin.endless + "\(turn)")
        return DraftJob(
            id: id, kind: .slow, lane: .normal, json: #"{"id":"\#(id)","source":"\#(source)","width":40}"#,
            allowed: ["cancelled"])
    }

    /// Sends ordinary jobs and returns their latencies, from sending to event, in seconds.
    /// - Parameter besides: The number of other jobs that stay open.
    private static func times(_ environment: ChaosEnvironment, jobs: Int, besides: Int = 0) async throws -> [Double] {
        let ledger = environment.ledger
        let before = ledger.count
        try await environment.traffic.run(jobs: jobs)
        try await environment.idle(besides: besides)
        let ends = Dictionary(ledger.ends.map { ($0.place, $0.at) }) { first, _ in first }
        return ledger.sent.dropFirst(before).compactMap { job in ends[job.place].map { $0 - job.at } }
    }

    private static func percentile(_ values: [Double], _ part: Double) -> Double {
        let sorted = values.sorted()
        return sorted.isEmpty ? 0 : sorted[min(sorted.count - 1, Int(Double(sorted.count) * part))]
    }

    private static func milliseconds(_ seconds: Double) -> String { "\(Double(Int(seconds * 10_000)) / 10) ms" }
}
