import Glibc
import Measuring
import TestSupport

/// How far `halcyon plan` is from what a worker and Redis take: `PlanBenchmark HALCYON FOLDER [JOBS]`.
///
/// HALCYON is the executable: asked for its plan of FOLDER's photographs, and run as a worker on Apache Kafka (KAFKA_HOME; the mock cluster
/// without), a redis-server and an nginx. For each ratio of hits JOBS (600) jobs; prints what was reckoned beside what was measured. The aim: within
/// 20 %.
@main struct PlanBenchmark {
    static let hitRatios = [0, 0.5, 0.9]

    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count > 2, let jobs = arguments.count > 3 ? Int(arguments[3]) : 600, jobs > 0 else {
            print("usage: PlanBenchmark HALCYON FOLDER [JOBS]   FOLDER holds JPEG photographs")
            exit(2)
        }
        let photographs = try jpegs(in: arguments[2])
        let fixture = try await OneWorker(executable: arguments[1], photographs: photographs)
        let result: Result<Void, any Error>
        do {
            let planner = Planner(executable: arguments[1], files: try jpegPaths(in: arguments[2]))
            result = .success(try await measure(fixture, planner, jobs: jobs, photographs: photographs.count))
        } catch {
            result = .failure(error)
        }
        await fixture.remove()
        try result.get()
    }

    static func measure(_ fixture: OneWorker, _ planner: Planner, jobs: Int, photographs: Int) async throws {
        // What is hit later; and all that a process does once.
        let warm = (0..<4 * photographs).map { fixture.job($0, "warm", id: "warm\($0)") }
        _ = try await fixture.cost(of: warm)
        say("\(photographs) photographs, \(jobs) jobs for each ratio of hits, on \(fixture.broker.name)")
        for hitRatio in hitRatios {
            let plan = try await planner.plan(hitRatio: hitRatio)
            var misses = 0
            let mixed = (0..<jobs).map { number in
                // In turn, so that hits and misses are mixed as finely as they can be.
                let isHit = Int(Double(number + 1) * hitRatio) > Int(Double(number) * hitRatio)
                if isHit { return fixture.job(number % (4 * photographs), "warm", id: "hit\(hitRatio)-\(number)") }
                misses += 1
                return fixture.job(misses, "miss\(hitRatio)-")
            }
            let before = try await RedisState(fixture.redis)
            let cost = try await fixture.cost(of: mixed)
            let after = try await RedisState(fixture.redis)
            let redis = (after.processorTime - before.processorTime) / Double(jobs)
            say("hits \(Int(hitRatio * 100)) %")
            say("  the worker   \(Self.beside(plan.job * 1e3, cost.processor * 1e3, 3)) ms of a processor a job")
            say("  Redis        \(Self.beside(plan.redis * 1e6, redis * 1e6, 0)) µs of a processor a job")
            // A source that is kept, and a result of it.
            let bytes = Double(after.bytes - before.bytes) / Double(misses)
            say("  its memory   \(Self.beside(plan.bytes / 1e3, bytes / 1e3, 1)) kB a result and its source")
        }
    }

    private static func beside(_ reckoned: Double, _ measured: Double, _ places: Int) -> String {
        "reckoned \(decimal(reckoned, places)), measured \(decimal(measured, places)) (\(decimal(reckoned / measured, 2)))"
    }
}
