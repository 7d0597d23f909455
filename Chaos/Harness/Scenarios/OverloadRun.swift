import Concurrency
import HalcyonModel
import Subprocess
import TestSupport

/// A run in which producers are many times faster than the worker. It checks that the worker's memory stays bounded,
/// that the lag is visible to operators, and that lanes are served by priority. Jobs have a deadline, so that the
/// backlog expires after the flood.
public struct OverloadRun: Sendable {
    /// Performs a run and prints its summary, including the jobs sent, jobs completed and memory used during the flood.
    /// - Returns: True if no guarantee was violated.
    /// - Throws: An error if the servers of the test environment fail.
    public static func run(_ options: ChaosRun.Options) async throws -> Bool {
        var plan = ChaosEnvironment.Plan()
        (plan.mode, plan.seed, plan.workers, plan.rate) = (options.mode, options.seed, 1, options.rate)
        (plan.books, plan.journal, plan.settings) = (options.books, options.journal, options.settings)
        plan.most = .max
        plan.kinds = [.heavy]
        return try await Scenario.on(plan) { environment in
            async let traffic: Void = environment.traffic.run()
            var memory: [Int] = []
            let end = environment.ledger.now + options.duration / .seconds(1)
            while environment.ledger.now < end {
                try await Task.sleep(for: .seconds(1))
                if let bytes = await environment.seats[0].residentBytes { memory.append(bytes) }
            }
            let lag = try await doctorsLag(environment)
            let flood = Flood(sent: environment.ledger.sent, ends: environment.ledger.ends, memory: memory, lag: lag)
            environment.traffic.end()
            try await traffic
            flood.lines.forEach(say)
            say("stopped the flood; waiting for the backlog to expire")
            try await environment.quiescence(within: options.patience, settling: options.settling)
            return flood.broken
        }
    }

    /// Returns the number of waiting jobs that `halcyon doctor` reports.
    private static func doctorsLag(_ environment: ChaosEnvironment) async throws -> Int {
        let run = try await ChildProcess.run(
            HalcyonExecutable.path,
            [
                "doctor", "--brokers", environment.kafka.bootstrapServers, "--redis",
                "redis://127.0.0.1:\(environment.redis.port)",
            ],
            timeLimit: .seconds(60), outputLimit: 1 << 20)
        let line =
            String(decoding: run.output, as: UTF8.self).split(separator: "\n").first { $0.contains("jobs not yet") }
            ?? ""
        say("halcyon doctor: \(line)")
        // The line has the group, a colon and the lag of each topic.
        let topics = line.split(separator: ":").dropFirst().joined().split(separator: ",")
        let lags: [Int] = topics.compactMap { $0.split(separator: " ").last.flatMap { Int($0) } }
        return lags.reduce(0, +)
    }
}
