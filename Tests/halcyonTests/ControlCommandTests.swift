import HalcyonModel
import JSON
import TestSupport
import Testing

/// `cancel` and `purge`, on a cluster of `halcyon dev`.
@Suite(.devCluster, .limitedParallelism) struct ControlCommandTests {
    private var cluster: DevClusterFixture { DevClusterFixture.current }

    private func run(_ arguments: [String]) async throws -> Run {
        try await Executable.run(arguments, environment: cluster.environment)
    }

    private func submit(_ url: String, _ widths: [String], _ options: [String] = []) async throws {
        for width in widths { try await run(["submit", url, "--width", width, "--wait"] + options).expect(0) }
    }

    /// Returns those of the widths that have a stored result.
    private func storedWidths(_ url: String, _ widths: [String], _ options: [String] = []) async throws -> [String] {
        var stored: [String] = []
        for width in widths {
            if try await run(["get", url, "--width", width, "--head"] + options).exit == .code(0) {
                stored.append(width)
            }
        }
        return stored
    }

    @Test func purgeBySourceRemovesResultsAndSendsAnEvent() async throws {
        let url = cluster.url("coffee.jpg")
        try await submit(url, ["201", "202"])
        try await submit(url, ["201"], ["--tenant", "other"])
        let purge = try await cluster.run("purge", "--source", url, "--json").expect(0).json()
        #expect(purge.count == 1 && purge[0].at("source") == url && purge[0].at("count") == "2")
        #expect(try await storedWidths(url, ["201", "202"]) == [])
        #expect(try await storedWidths(url, ["201"], ["--tenant", "other"]) == ["201"])
        let event = try await cluster.run(
            "events", "--source", url, "--type", "purged", "--since", "1h", "--limit", "1"
        ).expect(0).json()[0]
        #expect(event.at("subject") == url && event.at("data", "source") == url && event.at("data", "count") == "2")
        #expect(event.at("data", "job") == nil && event.at("id")?.hasPrefix("purge-") == true)
        // Purging nothing is not an error.
        #expect(try await cluster.run("purge", "--source", url).expect(0).output == "0 results purged\n")
        let tenants = try await cluster.run("purge", "--source", url, "--tenant", "other", "--json").expect(0).json()
        #expect(tenants[0].at("count") == "1" && tenants[0].at("tenant") == "other")
    }

    @Test func purgeByTagRemovesAllTaggedResults() async throws {
        let urls = [cluster.url("rocket.jpg"), cluster.url("chelsea.jpg")]
        for url in urls { try await submit(url, ["203"], ["--tag", "article 17", "--tag", "front"]) }
        try await submit(urls[0], ["204"], ["--tag", "front"])
        #expect(try await cluster.run("purge", "--tag", "article 17").expect(0).output == "2 results purged\n")
        #expect(try await storedWidths(urls[0], ["203", "204"]) == ["204"])
        #expect(try await storedWidths(urls[1], ["203"]) == [])
        #expect(try await cluster.run("purge", "--tag", "front", "--json").expect(0).json()[0].at("count") == "1")
    }

    @Test func purgeByKeyRemovesOnlyThatResult() async throws {
        let url = cluster.url("astronaut.jpg")
        try await submit(url, ["205", "206"])
        let key = try await cluster.run("key", url, "--width", "205").expect(0).lines[0]
        let purge = try await cluster.run("purge", "--key", key, "--json").expect(0).json()
        #expect(purge[0].at("key") == key && purge[0].at("count") == "1")
        #expect(try await storedWidths(url, ["205", "206"]) == ["206"])
    }

    @Test func cancelReportsRequestsAndUnavailableServers() async throws {
        let outcomes = try await cluster.run("cancel", "no-such-job", "another", "--json").expect(0).json()
        #expect(outcomes.map { $0.at("job") } == ["no-such-job", "another"] && outcomes[0].at("outcome") == "told")
        #expect(try await cluster.run("cancel", "x").expect(0).output == "x: cancellation requested\n")
        let unused = ["--brokers", "127.0.0.1:1"]
        #expect(try await run(["cancel", "x"] + unused).expect(1).errors.contains("Kafka does not answer"))
        #expect(try await run(["purge", "--tag", "x"] + unused).expect(1).errors.contains("Kafka does not answer"))
        #expect(
            try await run(["purge", "--tag", "x", "--redis", "redis://127.0.0.1:1"]).expect(1).errors
                .contains("Redis at redis://127.0.0.1:1"))
    }

    @Test func cancelsByAttribute() async throws {
        let url = cluster.url("coffee.jpg")
        let outcomes: [([String], String)] = [
            (["--tag", "x", "--tenant", "t"], "jobs of tenant t with tag x: cancellation requested\n"),
            (["--source", url, "--tenant", "t"], "jobs of tenant t with source \(url): cancellation requested\n"),
            (["--tag", "none"], "jobs without a tenant with tag none: cancellation requested\n"),
            (["--tenant", "t"], "jobs of tenant t: cancellation requested\n"),
        ]
        for (options, output) in outcomes {
            #expect(try await run(["cancel"] + options).expect(0).output == output)
        }
        let json = try await cluster.run("cancel", "--tenant", "t", "--json").expect(0).json()[0]
        #expect(json.at("jobs", "tenant") == "t" && json.at("outcome") == "told")
        for (options, message) in [
            ([], "nothing to cancel"), (["a", "--tenant", "t"], "ids cannot be combined"),
            (["--tag", "a", "--source", url], "--source and --tag cannot be combined"),
        ] {
            #expect(try await run(["cancel"] + options).expect(2).errors.contains(message))
        }
    }

    @Test func pausesAndResumesATenant() async throws {
        #expect(
            try await cluster.run("pause", "--tenant", "paused").expect(0).output.hasPrefix(
                "tenant paused: paused since "))
        #expect(try await cluster.run("pause", "--list").expect(0).output.contains("tenant paused: paused since "))
        let paused = try await cluster.run("pause", "--list", "--json").expect(0).json()
        #expect(paused.contains { $0.at("tenant") == "paused" && $0.at("since") != nil })
        try await until("the worker knows the pause") {
            try await cluster.response(to: "/metrics").contains("\nhalcyon_tenants_paused 1\n")
        }
        let url = cluster.url("coffee.jpg")
        try await run(["submit", url, "--id", "held", "--width", "31", "--tenant", "paused"]).expect(0)
        try await run(["submit", url, "--width", "31", "--tenant", "free", "--wait"]).expect(0)
        try await until("the job is held") {
            try await cluster.response(to: "/metrics").contains("\nhalcyon_paused_records 1\n")
        }
        #expect(try await run(["get", url, "--width", "31", "--tenant", "paused", "--head"]).exit != .code(0))
        #expect(try await cluster.run("resume", "--tenant", "paused").expect(0).output == "tenant paused: resumed\n")
        try await until("the job has ended") {
            try await run(["get", url, "--width", "31", "--tenant", "paused", "--head"]).exit == .code(0)
        }
        #expect(try await cluster.run("resume", "--tenant", "paused").expect(3).errors.contains("is not paused"))
        try await cluster.run("pause", "--tenant", "paused").expect(0)
        let resumed = try await cluster.run("resume", "--tenant", "paused", "--json").expect(0).output
        #expect(resumed == #"{"tenant":"paused","resumed":true}"# + "\n")
        for options in [[], ["--lane", "low", "--tenant", "t"], ["--lane", "slow"]] {
            try await run(["pause"] + options).expect(2)
            try await run(["resume"] + options).expect(2)
        }
        try await run(["pause", "--list", "--lane", "low"]).expect(2)
    }

    @Test func listsJobsInFlight() async throws {
        let origin = RawOrigin { _ in [.text("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nabc"), .awaitEnd] }
        try await run(["submit", origin.url("/slow"), "--id", "slow", "--tenant", "listed"]).expect(0)
        // The command ends as soon as all workers have replied.
        let jobs = ["jobs", "--tenant", "listed", "--timeout", "60s"]
        try await until("the job is listed") {
            let listing = try await run(jobs + ["--json"])
            return listing.exit == .code(0) && listing.output.contains(#""id":"slow""#)
        }
        let text = try await run(jobs).expect(0).output
        #expect(text.contains("slow  normal  ") && text.hasSuffix("1 of 1 job in flight on 1 worker\n"), "\(text)")
        #expect(try await run(jobs + ["--lane", "low", "--json"]).expect(0).output.isEmpty)
        try await cluster.run("cancel", "--tenant", "listed").expect(0)
        try await until("the job is cancelled") {
            let listing = try await run(jobs + ["--json"])
            return listing.exit == .code(0) && listing.output.isEmpty
        }
        try await origin.stop()
    }

    @Test func reportsASupersededJob() async throws {
        let url = cluster.url("coffee.jpg")
        let generation = ["--tenant", "slots", "--slot", "cell", "--generation"]
        try await run(["submit", url, "--width", "207", "--wait"] + generation + ["9"]).expect(0)
        let late = try await run(["submit", url, "--width", "208", "--wait"] + generation + ["8"]).expect(1)
        #expect(late.output.contains("superseded by generation 9 of its slot"))
        let json = try await run(["submit", url, "--width", "208", "--wait", "--json"] + generation + ["8"]).expect(1)
            .json()
        #expect(json[0].at("outcome") == "superseded" && json[0].at("supersededBy") == "9")
    }
}
