import Glibc
import Measuring
import TestSupport

/// The pause that the death, restart or addition of a worker causes: `GapBenchmark HALCYON [SCENARIO…]`.
///
/// HALCYON is the executable, run as three workers with the shipped defaults on one Apache Kafka (KAFKA_HOME) and a
/// redis-server. Cheap jobs come at a steady rate, in turn for each partition, while each scenario is played. Prints,
/// by scenario: the longest time without any terminal event; the longest time from the submission of a job to its
/// terminal event, for jobs in partitions of the workers that were left alone and for jobs in partitions of those that
/// were not; and how many of the jobs have ended.
@main struct GapBenchmark {
    static let workers = 3

    static func main() async throws {
        let arguments = CommandLine.arguments
        let chosen = arguments.dropFirst(2).map { Scenario(rawValue: $0) }
        guard arguments.count > 1, !chosen.contains(nil), ApacheKafka.isAvailable else {
            let names = Scenario.allCases.map(\.rawValue).joined(separator: ", ")
            say("usage: KAFKA_HOME=FOLDER GapBenchmark HALCYON [SCENARIO…]   of \(names)")
            exit(2)
        }
        let cluster = try await Cluster(executable: arguments[1])
        do {
            try await measure(chosen.isEmpty ? Scenario.allCases : chosen.compactMap { $0 }, cluster)
        } catch {
            await cluster.remove()
            throw error
        }
        await cluster.remove()
    }

    private static func measure(_ scenarios: [Scenario], _ cluster: Cluster) async throws {
        say("| three workers, \(Int(JobStream.rate)) jobs a second | silence | others | its own | ended |")
        say("|---|---|---|---|---|")
        for scenario in scenarios {
            try await cluster.scale(to: workers)
            let stream = cluster.submit()
            // Normal operation, to compare with.
            try await Task.sleep(for: .seconds(3))
            let disruptions = try await scenario.play(on: cluster)
            try await Task.sleep(for: .seconds(3))
            let jobs = try await cluster.jobs(of: stream)
            let outcome = Outcome(jobs, disruptions)
            say(
                "| \(scenario.title) | \(seconds(outcome.silence)) | \(seconds(outcome.others)) | "
                    + "\(seconds(outcome.affected)) | \(outcome.ended) of \(jobs.count) |")
        }
        say("The aims: others at most 2 s, its own at most 12 s, and every job ends.")
    }

    private static func seconds(_ duration: Double?) -> String { duration.map { "\(decimal($0, 1)) s" } ?? "–" }
}
