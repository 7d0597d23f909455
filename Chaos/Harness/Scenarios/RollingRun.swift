/// Workers are stopped in order and replaced one after the other, under load: nothing is lost, nothing fails, each drains in its grace.
public struct RollingRun: Sendable {
    /// Makes a run and prints its summary.
    /// - Parameter rounds: how often every worker is replaced.
    /// - Returns: whether every promise was kept.
    /// - Throws: when the servers of the run themselves fail.
    public static func run(_ options: ChaosRun.Options, rounds: Int) async throws -> Bool {
        var plan = Ground.Plan()
        (plan.mode, plan.seed, plan.workers, plan.rate) = (options.mode, options.seed, options.workers, options.rate)
        plan.most = options.rate * 5
        (plan.settings, plan.books, plan.journal) = (options.settings, options.books, options.journal)
        // Only jobs that must be ready.
        plan.kinds = [.ordinary, .slow, .variants, .unstored]
        return try await Scenario.on(plan) { ground in
            async let traffic: Void = ground.traffic.run()
            try await Task.sleep(for: .seconds(3))
            for _ in 0..<rounds {
                let begin = ground.ledger.now
                let fault = Rolling(workers: plan.workers)
                try await fault.begin(ground)
                ground.ledger.add(
                    FaultRecord(
                        kind: .rolling, what: fault.what, begin: begin, end: ground.ledger.now,
                        disturbances: fault.disturbances))
                try await Task.sleep(for: .seconds(2))
            }
            ground.traffic.end()
            try await traffic
            let drains = ground.ledger.drains
            try await ground.quiescence(within: options.patience, settling: options.settling)
            // A process takes a moment to end once it has drained.
            let late = drains.filter { !$0.isClean || $0.took > Ground.grace + 1 }
            return late.isEmpty ? [] : ["\(late.count) of \(drains.count) workers did not drain in their grace"]
        }
    }
}
