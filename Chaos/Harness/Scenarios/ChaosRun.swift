import Concurrency

/// A run with jobs and faults of all kinds, followed by an audit.
public struct ChaosRun: Sendable {
    /// Options of a run.
    public struct Options: Sendable {
        /// The delivery guarantee of the workers.
        public var mode = Audit.Mode.atLeastOnce
        /// The seed for jobs and faults.
        public var seed: UInt64 = 1
        /// The maximum time for which jobs are sent.
        public var duration = Duration.seconds(300)
        /// The number of jobs after which the run ends, if all faults have been injected.
        public var jobs = Int.max
        /// The maximum number of faults.
        public var faults = Int.max
        /// The kinds of faults.
        public var kinds = FaultKind.allCases
        /// The result store of the workers.
        public var store = StoreKind.s3
        /// The maximum number of simultaneous faults.
        public var lines = 2
        /// The time for which ending a fault is retried.
        public var healingTime = Duration.seconds(60)
        /// The number of workers.
        public var workers = 3
        /// The number of jobs per second.
        public var rate = 150
        /// The time that a job may take after the last fault. A job that has not ended by then is lost.
        public var patience = Duration.seconds(240)
        /// The time to wait for duplicate events at the end.
        public var settling = Duration.seconds(12)
        /// The file to which the ledger is written at the end; nil for none.
        public var books: String?
        /// The file for all log lines of the workers, from level info; nil for none.
        public var journal: String?
        /// Additional environment variables of the workers.
        public var settings: [String: String] = [:]

        /// Creates the options of a default run.
        public init() {}
    }

    /// Performs a run and prints its summary.
    /// - Returns: True if no guarantee was violated.
    /// - Throws: An error if the servers of the test environment fail.
    public static func run(_ options: Options) async throws -> Bool {
        var plan = ChaosEnvironment.Plan()
        (plan.mode, plan.seed, plan.workers, plan.rate) = (options.mode, options.seed, options.workers, options.rate)
        (plan.most, plan.store) = (options.rate * 5, options.store)
        if plan.store != .none { plan.kinds.append(.required) }
        (plan.settings, plan.books, plan.journal) = (options.settings, options.books, options.journal)
        return try await Scenario.on(plan) { environment in
            let others = options.kinds.filter { !environment.canInject($0) }.map(\.rawValue)
            if !others.isEmpty {
                say("left out, because this environment does not support them: \(others.joined(separator: ", "))")
            }
            let schedule = FaultSchedule(
                environment, kinds: options.kinds, most: options.faults, healingTime: options.healingTime)
            async let traffic: Void = environment.traffic.run()
            async let faults: Void = schedule.run(lines: options.lines)
            let end = environment.ledger.now + options.duration / .seconds(1)
            while environment.ledger.now < end && schedule.isRunning {
                if environment.ledger.count >= options.jobs && environment.ledger.faults.count >= options.faults {
                    break
                }
                try await Task.sleep(for: .seconds(1))
            }
            schedule.end()
            let injected: Result<Void, any Error>
            do { injected = .success(try await faults) } catch { injected = .failure(error) }
            environment.traffic.end()
            let sent: Result<Void, any Error>
            do { sent = .success(try await traffic) } catch { sent = .failure(error) }
            say("\(seconds(environment.ledger.now)): stopped sending jobs and injecting faults")
            try injected.get()
            try sent.get()
            try await environment.quiescence(within: options.patience, settling: options.settling)
            return []
        }
    }
}
