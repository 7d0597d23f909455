import JSON
import Kafka
import Subprocess
import TestSupport
import Testing

/// `dead list`, `dead show`, `dead replay` and `dead discard`, on a cluster of `halcyon dev` with one attempt per job.
@Suite(.devCluster, .limitedParallelism, .serialized) struct DeadLetterCommandTests {
    private var cluster: DevClusterFixture { DevClusterFixture.current }

    private func run(_ arguments: [String]) async throws -> Run {
        try await Executable.run(arguments, environment: cluster.environment)
    }

    /// Submits jobs whose origin is unavailable, and waits for their dead letters.
    private func submitFailingJobs(_ ids: String..., path: String, _ options: [String] = []) async throws {
        let port = LoopbackPort.reserve()
        let jobs = ids.map { #"{"id":"\#($0)","source":"http://127.0.0.1:\#(port)/\#(path)/\#($0).jpg","width":8}"# }
        let run = try await Executable.run(
            ["submit", "--from-file", "-", "--wait"] + options, input: jobs.joined(separator: "\n"),
            environment: cluster.environment)
        run.expect(1)
        try await waitForDeadLetters(ids)
    }

    /// Dead letters are published at the same time as the events for which a command waits.
    private func waitForDeadLetters(_ ids: [String]) async throws {
        let filters = ids.flatMap { ["--filter", "job=\($0)"] }
        try await until("the dead letters are listed") {
            try await self.run(["dead", "list"] + filters).lines.count >= ids.count
        }
    }

    @Test func listsDeadLettersByFilters() async throws {
        try await submitFailingJobs("list-1", "list-2", path: "list")
        let list = try await cluster.run("dead", "list", "--filter", "source=http://*/list/*", "--json").expect(0)
            .json()
        #expect(Set(list.map { $0.at("job") }) == ["list-1", "list-2"])
        for letter in list {
            #expect(letter.at("code") == "connect_error" && letter.at("reason") == "attempts")
            #expect(letter.at("attempts") == "1" && letter.at("lane") == "normal" && letter.at("replayed") == "false")
            #expect(letter.at("from")?.hasPrefix("halcyon.jobs-") == true && letter.at("original") == nil)
        }
        // Filters of the same name are alternatives. Filters of different names must all match.
        func jobs(_ filters: String...) async throws -> Set<String?> {
            let arguments = filters.flatMap { ["--filter", $0] }
            return Set(try await run(["dead", "list", "--json"] + arguments).expect(0).json().map { $0.at("job") })
        }
        #expect(try await jobs("job=list-1", "job=list-2") == ["list-1", "list-2"])
        #expect(
            try await jobs("job=list-1", "code=connect_error", "since=1h", "reason=attempts", "lane=normal") == [
                "list-1"
            ])
        #expect(try await jobs("job=list-1", "code=timeout").isEmpty)
        #expect(try await jobs("job=list-1", "until=1h").isEmpty)
        #expect(try await jobs("job=list-1", "lane=high").isEmpty)
        #expect(try await jobs("job=list-1", "tenant=somebody").isEmpty)
        #expect(
            try await cluster.run("dead", "list", "--filter", "job=list-*", "--limit", "1").expect(0).lines.count == 1)
    }

    @Test func tenantFilterSelectsJobsOfPresets() async throws {
        let preset = #"{"job":{"width":8,"tenant":"letters"}}"#
        try await cluster.run("preset", "put", "letters", "-", input: preset).expect(0)
        let source = "http://127.0.0.1:\(LoopbackPort.reserve())/preset.jpg"
        let job = #"{"id":"preset-1","source":"\#(source)","preset":"letters"}"#
        try await Executable.run(
            ["submit", "--from-file", "-", "--wait"], input: job, environment: cluster.environment
        ).expect(1)
        try await waitForDeadLetters(["preset-1"])
        let list = try await run(["dead", "list", "--json", "--filter", "tenant=letters"]).expect(0).json()
        #expect(list.count == 1 && list[0].at("job") == "preset-1" && list[0].at("tenant") == "letters")
    }

    @Test func listsTheOldestFirstAcrossPartitions() async throws {
        for number in 1...6 { try await submitFailingJobs("age-\(number)", path: "age") }
        func jobs(_ more: String...) async throws -> [String?] {
            try await run(["dead", "list", "--json", "--filter", "job=age-*"] + more).expect(0).json()
                .map { $0.at("job") }
        }
        #expect(try await jobs() == (1...6).map { "age-\($0)" })
        #expect(try await jobs("--limit", "2") == ["age-1", "age-2"])
        // They are in several partitions.
        let list = try await run(["dead", "list", "--json", "--filter", "job=age-*"]).json()
        #expect(Set(list.map { $0.at("letter")?.prefix { $0 != "-" } }).count > 1)
    }

    @Test func replayOfAllRequiresConfirmation() async throws {
        try await submitFailingJobs("all-1", path: "all")
        let refused = try await run(["dead", "replay"]).expect(2)
        #expect(refused.errors.contains("without --filter all dead letters are replayed"))
        // In a terminal the command asks for confirmation.
        func replayInTerminal(_ answer: String) async throws -> Run {
            let folder = TemporaryFolder("terminal")
            var options = ChildProcess.Options()
            options.environment = cluster.environment.merging(["PATH": "/usr/bin:/bin", "HOME": folder.path]) { $1 }
            let input = folder.write("\(answer)\n".utf8, to: "input")
            let script = "script -qec \"\(HalcyonExecutable.path) dead replay --limit 1\" /dev/null <$0 >$1"
            let child = try await ChildProcess.start(
                "/bin/sh", ["-c", script, input, "\(folder.path)/output"], options: options)
            let run = Run(exit: await child.exit(), bytes: folder.read("output"), errors: "")
            await folder.remove()
            return run
        }
        let no = try await replayInTerminal("n").expect(1)
        #expect(no.output.contains("Replay 1 dead letter? [y/N]"))
        #expect(no.output.contains("nothing was replayed") && !no.output.contains("to halcyon.jobs"))
        #expect(try await run(["dead", "list", "--filter", "job=all-1"]).expect(0).lines.count == 1)
        #expect(try await replayInTerminal("y").expect(0).output.contains("  replayed  to halcyon.jobs"))
        try await run(["dead", "replay", "--yes", "--limit", "1"]).expect(0)
    }

    @Test func showPrintsTheWholeDeadLetter() async throws {
        try await submitFailingJobs("show-1", path: "show")
        let show = try await cluster.run("dead", "show", "--filter", "job=show-1", "--json").expect(0).json()
        #expect(show.count == 1 && show[0].at("original", "id") == "show-1")
        #expect(show[0].at("history")?.contains("connect_error") == true)
        let id = try #require(show[0].at("letter"))
        let text = try await cluster.run("dead", "show", id).expect(0).output
        #expect(text.contains("show-1.jpg") && text.contains("connect_error") && text.contains("message"))
        let missing = try await cluster.run("dead", "show", "0-999999").expect(3)
        #expect(missing.errors.contains("dead letter not found: 0-999999"))
    }

    @Test func showPrintsMalformedMessages() async throws {
        let producer = try Producer(properties: ["bootstrap.servers": cluster.kafka])
        try await producer.send(ProducerRecord(topic: "halcyon.jobs", value: Array("half a {job".utf8)))
        await producer.close()
        try await until("the message is a dead letter") {
            try await run(["dead", "list", "--filter", "code=invalid_job"]).output.contains("invalid_job")
        }
        let show = try await cluster.run("dead", "show", "--filter", "code=invalid_job", "--json").expect(0).json()
        #expect(show[0].at("originalBase64") == "aGFsZiBhIHtqb2I=" && show[0].at("attempts") == nil)
    }

    @Test func replayedDeadLetterIsReplacedIfItFailsAgain() async throws {
        try await submitFailingJobs("replay-1", "replay-2", path: "replay")
        let filter = ["--filter", "job=replay-*"]
        let dry = try await run(["dead", "replay", "--dry-run"] + filter).expect(0)
        #expect(dry.lines.count == 2 && dry.output.contains("would be replayed"))
        #expect(try await run(["dead", "list"] + filter).expect(0).lines.count == 2)

        let one = try await cluster.run("dead", "replay", "--filter", "job=replay-1", "--json").expect(0).json()
        #expect(one.count == 1 && one[0].at("outcome") == "replayed" && one[0].at("lane") == "normal")
        // It fails again, as a new dead letter that counts its replays.
        try await until("the job has failed again") {
            try await run(["dead", "list", "--json", "--filter", "job=replay-1"]).json().contains {
                $0.at("replays") == "1"
            }
        }
        let open = try await run(["dead", "list", "--json"] + filter).expect(0).json()
        #expect(
            open.count == 2 && open.allSatisfy { $0.at("letter") != one[0].at("letter") || $0.at("job") == "replay-2" })
        let all = try await run(["dead", "list", "--replayed", "--json"] + filter).expect(0).json()
        #expect(all.count == 3 && all.count { $0.at("replayed") == "true" } == 1)
        // The two runs have events with different ids.
        let events = try await cluster.run(
            "events", "--job", "replay-1", "--type", "failed", "--since", "1h", "--limit", "2"
        ).expect(0).json()
        #expect(Set(events.map { $0.at("id") }).count == 2)
        try await run(["dead", "replay", "--filter", "job=nobody"]).expect(3)
    }

    @Test func discardsOnlySelectedDeadLetters() async throws {
        try await submitFailingJobs("discard-1", "discard-2", path: "discard")
        let refused = try await run(["dead", "discard"]).expect(2)
        #expect(refused.errors.contains("without --filter all dead letters are discarded"))
        let dry = try await run(["dead", "discard", "--filter", "job=discard-1", "--dry-run"]).expect(0)
        #expect(dry.output.contains("would be discarded  discard-1"))
        #expect(try await run(["dead", "list", "--filter", "job=discard-*"]).expect(0).lines.count == 2)
        let discarded = try await run(["dead", "discard", "--filter", "job=discard-1", "--json"]).expect(0).json()
        #expect(discarded.map { $0.at("outcome") } == ["discarded"])
        #expect(
            try await run(["dead", "list", "--filter", "job=discard-*", "--json"]).expect(0).json()
                .map { $0.at("job") } == ["discard-2"])
        // Its message can still be read, and it is not replayed.
        let letter = try #require(discarded[0].at("letter"))
        #expect(try await run(["dead", "show", letter]).expect(0).output.contains("discard-1"))
        try await run(["dead", "replay", "--filter", "job=discard-1"]).expect(3)
        try await run(["dead", "discard", "--filter", "job=discard-1"]).expect(3)
        try await run(["dead", "discard", "--filter", "job=discard-2"]).expect(0)
    }

    @Test func listsAndReplaysUndeliveredWebhookEvents() async throws {
        let event =
            #"{"id":"halcyon.jobs-0-7-ended","source":"/halcyon","type":"halcyon.image.ready","subject":"initials:JD","data":{"job":{"id":"hook-1"}}}"#
        let headers = [
            ("halcyon-webhook", "shop"), ("halcyon-code", "http_error"),
            ("halcyon-message", "the webhook answered 500"),
            ("halcyon-topic", "halcyon.events"), ("halcyon-partition", "0"), ("halcyon-offset", "7"),
            ("halcyon-submitted", "1795257067000"), ("halcyon-attempts", "40"), ("halcyon-began", "1795257067000"),
            ("halcyon-history", "[]"), ("halcyon-reason", "attempts"),
        ].map { RecordHeader($0.0, $0.1) }
        let producer = try Producer(properties: ["bootstrap.servers": cluster.kafka])
        try await producer.send(
            ProducerRecord(topic: "halcyon.dead", key: Array("hook-1".utf8), value: Array(event.utf8), headers: headers)
        )
        await producer.close()
        let list = try await run(["dead", "list", "--json", "--filter", "webhook=s*"]).expect(0).json()
        #expect(list.count == 1 && list[0].at("webhook") == "shop" && list[0].at("job") == "hook-1")
        #expect(list[0].at("source") == "initials:JD" && list[0].at("lane") == nil && list[0].at("attempts") == "40")
        #expect(try await run(["dead", "list", "--filter", "webhook=blog"]).expect(0).output.isEmpty)
        #expect(try await run(["dead", "list", "--filter", "job=hook-1"]).expect(0).output.contains("webhook shop"))
        let replay = try await run(["dead", "replay", "--json", "--filter", "webhook=shop"]).expect(0).json()
        #expect(replay.count == 1 && replay[0].at("outcome") == "replayed" && replay[0].at("webhook") == "shop")
        let again = try await TopicReader.open(
            "halcyon.webhooks.10s", from: .beginning, properties: ["bootstrap.servers": cluster.kafka],
            within: .patience)
        var iterator = again.makeAsyncIterator()
        let sent = try #require(try await iterator.next())
        await again.close()
        func header(_ name: String) -> String? {
            sent.headers.last { $0.name == name }?.value.map { String(decoding: $0, as: UTF8.self) }
        }
        #expect(sent.value == Array(event.utf8) && header("halcyon-webhook") == "shop")
        #expect(header("halcyon-attempts") == "0" && header("halcyon-replays") == "1" && header("halcyon-code") == nil)
        #expect(header("halcyon-topic") == "halcyon.events" && header("halcyon-offset") == "7")
    }

    @Test func reportsUsageAndConnectionErrors() async throws {
        for filter in ["code", "code=never", "colour=red", "since=yesterday", "lane=fast", "reason=final-ly"] {
            let run = try await cluster.run("dead", "list", "--filter", filter).expect(2)
            #expect(run.errors.contains("--filter") && run.errors.contains("NAME=VALUE"), "\(run.errors)")
        }
        #expect(try await cluster.run("dead", "show", "seventeen").expect(2).errors.contains("PARTITION-OFFSET"))
        #expect(try await cluster.run("dead").expect(2).errors.contains("missing"))
        let unreachable = try await run(["dead", "list", "--brokers", "127.0.0.1:1"]).expect(1)
        #expect(unreachable.errors.contains("Kafka does not answer"))
        let none = try await run(["dead", "list", "--prefix", "other."]).expect(1)
        #expect(none.errors.contains("there is no topic other.dead"))
    }
}
