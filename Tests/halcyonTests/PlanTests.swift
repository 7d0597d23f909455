import TestSupport
import Testing

/// `halcyon plan`.
@Suite struct PlanTests {
    private let figures = ["--rendering", "8", "--source-bytes", "400kB", "--result-bytes", "30kB"]

    @Test func computesThePlanFromGivenFigures() async throws {
        let run = try await Executable.run(
            ["plan", "--rate", "60000/min", "--processors", "4", "--json"] + figures
        ).expect(0)
        let plan = try #require(try run.json().first)
        let count = try #require(plan.at("workers", "count").flatMap(Double.init))
        // 8 s of rendering per second and the rest of the jobs, whose cost depends on the speed of the machine, at
        // 4 × 0.7 processors per worker, and one spare worker.
        let work = try #require(plan.at("workers", "work").flatMap(Double.init))
        #expect(work > 8 && count == (work / 2.8).rounded(.up) + 1)
        #expect(plan.at("costs", "rendering") == "0.008" && plan.at("bound") == "processors")
        let words = try await Executable.run(["plan", "--rate", "1000", "--hit-ratio", "0.9"] + figures).expect(0)
        // Their number depends on the measured cost too.
        let advice = words.output.firstMatch(of: /halcyon topics create --partitions (\d+)/)
        #expect(advice.flatMap { Int($0.1) }?.isMultiple(of: 12) == true)
    }

    @Test func measuresSampleImages() async throws {
        let run = try await Executable.run(
            ["plan", Samples.chelsea, "--rate", "10/s", "--width", "100", "--job", "-", "--json"],
            input: #"{"variants": [{"format": "jpeg"}, {"format": "webp"}]}"#
        ).expect(0)
        let plan = try #require(try run.json().first)
        let rendering = try #require(plan.at("costs", "rendering").flatMap(Double.init))
        #expect(rendering > 0.0005 && rendering < 1)
        // The results of a day, two per job.
        #expect(plan.at("redis", "results") == "1728000")
    }

    @Test func plansAResultStore() async throws {
        let options = ["plan", "--rate", "1000", "--hit-ratio", "0.5", "--life", "1000s", "--redis-bytes", "1GB"]
        let run = try await Executable.run(options + ["--json"] + figures).expect(0)
        let plan = try #require(try run.json().first)
        #expect(plan.at("store", "results") == "500000" && plan.at("store", "putsPerSecond") == "500")
        #expect(plan.at("redis", "resultBytes").flatMap(Double.init).map { abs($0 - 1e9) < 1 } == true)
        let words = try await Executable.run(options + figures).expect(0)
        #expect(words.output.contains("\nstore ") && words.output.contains("500 PUT and "))
        let plain = try await Executable.run(Array(options.dropLast(2)) + figures).expect(0)
        #expect(!plain.output.contains("\nstore "))
    }

    @Test func reportsMissingAndInvalidFigures() async throws {
        let rateless = try await Executable.run(["plan"] + figures).expect(2)
        #expect(rateless.errors.contains("--rate") && rateless.errors.contains("500/s"))
        let imageless = try await Executable.run(["plan", "--rate", "5", "--rendering", "8"]).expect(2)
        #expect(imageless.errors.contains("--source-bytes"))
        for rate in ["0", "-1", "5/fortnight", "many", "5/s/s"] {
            #expect(
                try await Executable.run(["plan", "--rate", rate] + figures).expect(2).errors.contains("60000/min"))
        }
        try await Executable.run(["plan", "/no/such.jpg", "--rate", "5"]).expect(1)
    }
}
