import TestSupport

/// A rolling restart of all workers under load. It checks that no job is lost or fails and that each worker drains
/// within its grace period.
public struct RollingRun: Sendable {
    /// Performs a run and prints its summary.
    /// - Parameters:
    ///   - rounds: The number of rolling restarts.
    ///   - other: The executable of another version. The workers start with it, the first restart replaces it by the
    ///     executable under test, the second restores it, and so on. Nil if all workers are of one version.
    /// - Returns: True if no guarantee was violated.
    /// - Throws: An error if the servers of the test environment fail.
    public static func run(_ options: ChaosRun.Options, rounds: Int, other: String? = nil) async throws -> Bool {
        var plan = ChaosEnvironment.Plan()
        (plan.mode, plan.seed, plan.workers, plan.rate) = (options.mode, options.seed, options.workers, options.rate)
        plan.most = options.rate * 5
        (plan.settings, plan.books, plan.journal) = (options.settings, options.books, options.journal)
        // Only jobs that must succeed.
        plan.kinds = [.ordinary, .slow, .variants, .unstored]
        let versions = [other ?? HalcyonExecutable.path, HalcyonExecutable.path]
        plan.executable = versions[0]
        return try await Scenario.on(plan) { [plan] environment in
            async let traffic: Void = environment.traffic.run()
            try await Task.sleep(for: .seconds(3))
            for round in 0..<rounds {
                let begin = environment.ledger.now
                for supervised in environment.seats { await supervised.use(versions[(round + 1) % 2]) }
                let fault = Rolling(workers: plan.workers)
                try await fault.begin(environment)
                environment.ledger.add(
                    FaultRecord(
                        kind: .rolling, what: fault.what, begin: begin, end: environment.ledger.now,
                        disturbances: fault.disturbances))
                try await Task.sleep(for: .seconds(2))
            }
            environment.traffic.end()
            try await traffic
            let drains = environment.ledger.drains
            try await environment.quiescence(within: options.patience, settling: options.settling)
            // A process takes a moment to exit after it has drained.
            let late = drains.filter { !$0.isClean || $0.took > ChaosEnvironment.grace + 1 }
            var broken = late.isEmpty ? [] : ["\(late.count) of \(drains.count) workers exceeded the grace period"]
            let missing = rounds * plan.workers - drains.count
            if missing > 0 { broken.append("\(missing) workers were not running when they should have been replaced") }
            return broken
        }
    }
}
