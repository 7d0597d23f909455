import Glibc
import JSON
import TestSupport
import Testing

@testable import HalcyonCLI

/// `halcyon bench` against a cluster of `halcyon dev`.
@Suite(.devCluster, .limitedParallelism, .serialized) struct BenchTests {
    private var cluster: DevClusterFixture { DevClusterFixture.current }

    @Test func countsJobsByOutcome() async throws {
        let run = try await cluster.run(
            "bench", cluster.url("coffee.jpg"), cluster.url("missing.jpg"), "--size", "40x30", "--size", "20x20",
            "--jobs", "40", "--concurrency", "4", "--json")
        let report = try #require(try run.expect(1).json().first)
        #expect(report.at("submitted") == "40" && report.at("ready") == "20" && report.at("failed") == "20")
        #expect(report.at("failures") == #"{"not_found":20}"# && report.at("unfinished") == "0")
        // Two results are rendered. All other jobs hit the cache or are coalesced.
        let hits = try #require(report.at("hitRatio").flatMap(Double.init))
        let coalesced = try #require(report.at("coalescingRatio").flatMap(Double.init))
        #expect(hits > 0 && hits + coalesced <= 0.9 + 1e-9)
        #expect(report.at("latency", "count") == "40" && report.at("stages", "total", "count") == "20")
        let percentiles = ["p50", "p95", "p99", "max"].compactMap { report.at("latency", $0).flatMap(Double.init) }
        #expect(percentiles.count == 4 && percentiles == percentiles.sorted() && percentiles[0] > 0)
    }

    @Test func needsNoOriginWithoutSources() async throws {
        let run = try await cluster.run("bench", "--jobs", "30", "--reload").expect(0)
        #expect(run.lines[0].hasPrefix("jobs        30 in ") && run.lines[0].hasSuffix(" 30 ready, 0 failed"))
        #expect(run.lines[1].hasPrefix("latency     p50 "))
        #expect(run.lines.contains { $0.hasPrefix("  encode ") && $0.hasSuffix(" jobs)") })
    }

    @Test func acceptsRegisteredPresets() async throws {
        let preset = #"{"job": {"width": 16, "height": 16, "format": "png"}}"#
        try await cluster.run("preset", "put", "measured", "-", input: preset).expect(0)
        let run = try await cluster.run("bench", "initials:P", "--preset", "measured", "--jobs", "2", "--json")
        let report = try run.expect(0).json().first
        #expect(report?.at("ready") == "2")
        let unknown = try await cluster.run("bench", "--preset", "missing", "--jobs", "1").expect(2)
        #expect(unknown.errors.contains("--preset: there is no preset missing"))
    }

    @Test func submitsAtTheGivenRate() async throws {
        // One job every tenth of a second, starting immediately. On a busy machine, the time may be over before all of
        // them are sent.
        try await until("all jobs are submitted") {
            let options = ["--rate", "10/s", "--duration", "2s", "--concurrency", "20", "--json"]
            let run = try await Executable.run(["bench"] + options, environment: cluster.environment).expect(0)
            let submitted = try run.json().first?.at("submitted").flatMap { Int($0) } ?? 0
            #expect((1...20).contains(submitted))
            return submitted == 20
        }
    }

    @Test func reportsPartialResultsWhenInterrupted() async throws {
        let run = try await Executable.runInterrupted(
            ["bench", "initials:SG", "--duration", "1h", "--concurrency", "2", "--json"],
            environment: cluster.environment
        ) { _ in
            // Waits for its own jobs, because other tests use the same cluster. With two jobs in flight, the benchmark
            // has read the events of all but the last two.
            try await cluster.run("events", "--source", "initials:SG", "--type", "ready", "--limit", "5").expect(0)
        }.expect(130)
        let report = try run.json().first
        #expect(report?.at("ready").flatMap { Int($0) } ?? 0 > 0)
        #expect(run.errors.contains("interrupted; submitted jobs continue"))
    }

    @Test(arguments: [
        (["--size", "400"], "--size: expected WIDTHxHEIGHT in points"), (["--id", "a"], "an id can name only one job"),
        (["ftp://h/a"], "no provider for ftp: URLs"),
    ])
    func rejectsInvalidOptions(options: [String], reason: String) async throws {
        let run = try await Executable.run(["bench"] + options, environment: cluster.environment).expect(2)
        #expect(run.errors.contains(reason))
    }

    @Test func percentilesAreAtMostTwoPercentTooHigh() {
        var spread = Spread()
        #expect(spread.percentile(0.5) == nil)
        for milliseconds in 1...1000 { spread.add(Double(milliseconds)) }
        for (part, exact) in [(0.5, 500.0), (0.95, 950), (0.99, 990)] {
            let found = spread.percentile(part)!
            #expect(found >= exact && found <= exact * 1.02)
        }
        #expect(spread.percentile(1) == 1000 && spread.longest == 1000)
        spread.add(-1)
        spread.add(1e300)
        #expect(spread.count == 1002)
    }
}
