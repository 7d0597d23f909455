import JSON
import Measuring
import TestSupport

/// Asks `halcyon plan`.
struct Planner {
    let executable: String
    /// The photographs.
    let files: [String]

    /// What it says of a job: seconds of a worker's processor and of Redis', and bytes of a result and its source in Redis.
    struct Costs {
        let job, redis, bytes: Double
    }

    private static let rate = 1000.0

    func plan(hitRatio: Double) async throws -> Costs {
        let size = PlainLoops.usual
        let output = try await ProgramOutput.of(
            executable,
            ["plan"] + files + [
                "--rate", "\(Self.rate)", "--hit-ratio", "\(hitRatio)", "--width", "\(size.width)", "--height",
                "\(size.height)",
                "--format", "jpeg", "--quality", "80", "--json",
            ])
        let plan = try JSON.parse(Array(output.utf8), maximumSize: 1 << 16, maximumDepth: 8)
        func number(_ group: String, _ name: String) throws -> Double {
            guard let value = try plan.member(group)?.member(name)?.double() else {
                throw ConditionTimeout(description: "no \(group).\(name) in the plan")
            }
            return value
        }
        let made = Self.rate * (1 - hitRatio)
        return Costs(
            job: try number("costs", "job"), redis: try number("redis", "work") / Self.rate,
            bytes: try number("redis", "resultBytes") / number("redis", "results")
                + number("redis", "sourceBytes") / (made * 3600))
    }
}

/// What Redis says of itself.
struct RedisState {
    /// Seconds of processors that it has used.
    let processorTime: Double
    /// Bytes that it has in use.
    let bytes: Int

    init(_ server: RedisServer) async throws {
        let facts = try await server.run("INFO").split(whereSeparator: \.isNewline)
        func number(_ name: String) -> Double {
            facts.first { $0.hasPrefix("\(name):") }.flatMap { Double($0.dropFirst(name.utf8.count + 1)) } ?? 0
        }
        processorTime = number("used_cpu_sys") + number("used_cpu_user")
        bytes = Int(number("used_memory"))
    }
}
