import HalcyonModel
import Processes
import TestSupport
import Threads

/// Producers are many times faster than the worker, for as long as the run goes: its memory stays bounded, the lag is seen from outside, and
/// the lanes keep their order. Jobs have a deadline, so that what is left of the flood runs off when it is over.
public struct OverloadRun: Sendable {
    /// Makes a run and prints its summary, with what was sent, done and used while the flood went on.
    /// - Returns: whether every promise was kept.
    /// - Throws: when the servers of the run themselves fail.
    public static func run(_ options: ChaosRun.Options) async throws -> Bool {
        var plan = Ground.Plan()
        (plan.mode, plan.seed, plan.workers, plan.rate) = (options.mode, options.seed, 1, options.rate)
        (plan.books, plan.journal, plan.settings) = (options.books, options.journal, options.settings)
        plan.most = .max
        plan.kinds = [.heavy]
        return try await Scenario.on(plan) { ground in
            async let traffic: Void = ground.traffic.run()
            var memory: [Int] = []
            let end = ground.ledger.now + options.duration / .seconds(1)
            while ground.ledger.now < end {
                try await Task.sleep(for: .seconds(1))
                if let bytes = await ground.seats[0].residentBytes { memory.append(bytes) }
            }
            let lag = try await doctorsLag(ground)
            let flood = Flood(sent: ground.ledger.sent, ends: ground.ledger.ends, memory: memory, lag: lag)
            ground.traffic.end()
            try await traffic
            flood.lines.forEach(say)
            say("the flood is over; what is left of it runs off")
            try await ground.quiescence(within: options.patience, settling: options.settling)
            return flood.broken
        }
    }

    /// How many jobs wait, as the operator is told.
    private static func doctorsLag(_ ground: Ground) async throws -> Int {
        let run = try await ChildProcess.run(
            HalcyonExecutable.path,
            [
                "doctor", "--brokers", ground.kafka.bootstrapServers, "--redis",
                "redis://127.0.0.1:\(ground.redis.port)",
            ],
            timeLimit: .seconds(60), outputLimit: 1 << 20)
        let line =
            String(decoding: run.output, as: UTF8.self).split(separator: "\n").first { $0.contains("jobs that group") }
            ?? ""
        say("halcyon doctor: \(line)")
        // The group, then each topic with what waits there.
        return line.split(separator: ":").dropFirst().joined().split(separator: ",")
            .compactMap { $0.split(separator: " ").last.flatMap { Int($0) } }.reduce(0, +)
    }
}
