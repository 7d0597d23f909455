import Threads

/// Jobs of all kinds, faults of all kinds, and at the end the books.
public struct ChaosRun: Sendable {
    /// How long and how hard.
    public struct Options: Sendable {
        /// What is promised of each job's end.
        public var mode = Audit.Mode.atLeastOnce
        /// Chooses jobs and faults.
        public var seed: UInt64 = 1
        /// Jobs are sent for so long at most.
        public var duration = Duration.seconds(300)
        /// So many jobs are enough, with as many faults as are wanted.
        public var jobs = Int.max
        /// So many faults are made at most.
        public var faults = Int.max
        /// Which kinds.
        public var kinds = FaultKind.allCases
        /// How many may be under way at once.
        public var lines = 2
        /// How many workers there are.
        public var workers = 3
        /// Jobs a second.
        public var rate = 150
        /// How long a job may take once nothing goes wrong any more; what has not ended then is lost.
        public var patience = Duration.seconds(240)
        /// How long is waited for what would be told twice.
        public var settling = Duration.seconds(12)
        /// Where the ledger is written to in the end; nil for nowhere.
        public var books: String?
        /// Where every line of the workers' logs goes, from level info on; nil for nowhere.
        public var journal: String?
        /// More of the workers' environment.
        public var settings: [String: String] = [:]

        /// The usual run.
        public init() {}
    }

    /// Makes a run and prints its summary.
    /// - Returns: whether every promise was kept.
    /// - Throws: when the servers of the run themselves fail.
    public static func run(_ options: Options) async throws -> Bool {
        var plan = Ground.Plan()
        (plan.mode, plan.seed, plan.workers, plan.rate) = (options.mode, options.seed, options.workers, options.rate)
        plan.most = options.rate * 5
        (plan.settings, plan.books, plan.journal) = (options.settings, options.books, options.journal)
        return try await Scenario.on(plan) { ground in
            let schedule = FaultSchedule(ground, kinds: options.kinds, most: options.faults)
            async let traffic: Void = ground.traffic.run()
            async let faults: Void = schedule.run(lines: options.lines)
            let end = ground.ledger.now + options.duration / .seconds(1)
            while ground.ledger.now < end {
                if ground.ledger.count >= options.jobs && ground.ledger.faults.count >= options.faults { break }
                try await Task.sleep(for: .seconds(1))
            }
            schedule.end()
            try await faults
            ground.traffic.end()
            try await traffic
            say("\(seconds(ground.ledger.now)): no more jobs and no more faults")
            try await ground.quiescence(within: options.patience, settling: options.settling)
            return []
        }
    }
}
