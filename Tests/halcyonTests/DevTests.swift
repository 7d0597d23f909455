import Glibc
import JSON
import Redis
import Subprocess
import TestSupport
import Testing

/// Commands on a cluster of `halcyon dev`.
@Suite(.devCluster, .limitedParallelism) struct DevTests {
    private var cluster: DevClusterFixture { DevClusterFixture.current }

    @Test func submitGetAndRenderAgreeOnKeyAndImage() async throws {
        let folder = TemporaryFolder("images")
        let url = cluster.url("chelsea.jpg")
        let key = try await cluster.run("key", url, "--width", "210", "--height", "100").expect(0).lines[0]
        try await cluster.run("get", url, "--width", "210", "--height", "100").expect(3)

        let submit = try await cluster.run(
            "submit", url, url, "--width", "210", "--height", "100", "--output", "\(folder.path)/new/images", "--json"
        ).expect(0)
        let results = try submit.json()
        #expect(results.map { $0.at("outcome") } == ["ready", "ready"])
        #expect(results.map { $0.at("key") } == [key, key])
        #expect(results[0].at("id") != results[1].at("id"))
        let first = folder.read("new/images/chelsea-210x100.jpg")
        #expect(first.starts(with: [0xff, 0xd8]) && first == folder.read("new/images/chelsea-2-210x100.jpg"))

        let get = try await cluster.run("get", url, "--width", "210", "--height", "100").expect(0)
        #expect(get.bytes == first)
        #expect(try await cluster.run("get", key).expect(0).bytes == first)
        let facts = try #require(try await cluster.run("get", key, "--json").expect(0).json().first)
        #expect(facts.at("result", "width") == "210" && facts.at("result", "bytes") == "\(first.count)")

        let render = try await cluster.run(
            "render", url, "--width", "210", "--height", "100", "--set", "sources.allow=127.0.0.1")
        #expect(render.expect(0).bytes == first, "a worker and `render` produce the same image")
        await folder.remove()
    }

    @Test func exactlyOnceWorkerFailsOnTheEmbeddedBroker() async throws {
        let run = try await cluster.run(
            "worker", "--set", "delivery=exactly-once", "--set", "kafka.group=another"
        ).expect(1)
        #expect(run.errors.contains("mock cluster has no transactions"), "\(run.errors)")
    }

    @Test func submitGetAndRenderAgreeOnAllVariants() async throws {
        let folder = TemporaryFolder("variants")
        let url = cluster.url("astronaut.jpg")
        let job = folder.write(
            """
            {"variants": [{"width": 120, "height": 90}, {"width": 120, "height": 90, "quality": 30},
            {"width": 60, "format": "webp", "blurhash": true}]}
            """.utf8, to: "job.json")
        let keys = try await cluster.run("key", url, "--job", job).expect(0).lines
        #expect(keys.count == 3)
        try await cluster.run("get", url, "--job", job, "-o", "\(folder.path)/got/").expect(3)

        let submit = try await cluster.run(
            "submit", url, "--job", job, "--output", "\(folder.path)/made", "--json"
        ).expect(0)
        let outcome = try #require(try submit.json().first)
        #expect(outcome.at("key") == keys[0])
        var variants: [JSONElement] = []
        try outcome.member("variants")?.forEachElement { variants.append($0) }
        #expect(variants.map { $0.at("key") } == keys)
        let names = ["astronaut-120x90.jpg", "astronaut-120x90-2.jpg", "astronaut-60x60.webp"]
        #expect(variants.map { $0.at("file") } == names.map { "\(folder.path)/made/\($0)" })
        #expect(variants[2].at("blurhash") != nil)

        let get = try await cluster.run("get", url, "--job", job, "-o", "\(folder.path)/got/").expect(0)
        #expect(get.lines.count == 3)
        let render = try await cluster.run(
            "render", url, "--job", job, "-o", "\(folder.path)/rendered/", "--set", "sources.allow=127.0.0.1")
        #expect(render.expect(0).lines.count == 4)
        for name in names {
            let made = folder.read("made/\(name)")
            #expect(!made.isEmpty && made == folder.read("got/\(name)") && made == folder.read("rendered/\(name)"))
        }
        let lines = try await cluster.run("submit", url, "--job", job, "--wait").expect(0).lines
        #expect(lines.count == 3 && zip(lines, keys).allSatisfy { $0.hasPrefix("ok      \(url)") && $0.hasSuffix($1) })
        await folder.remove()
    }

    @Test func submitAcceptsInitials() async throws {
        let run = try await cluster.run("submit", "initials:HB", "--width", "48", "--wait").expect(0)
        #expect(run.lines[0].hasPrefix("ok      initials:HB  48x48  png  "))
        #expect(
            try await cluster.run("get", "initials:HB", "--width", "48").expect(0).bytes.starts(with: [0x89, 0x50]))
    }

    @Test func submitFailsIfOneJobFailsAndKeepsTheOrder() async throws {
        let run = try await cluster.run(
            "submit", cluster.url("none.jpg"), cluster.url("coffee.jpg"), cluster.url("README.md"), "--width", "80",
            "--wait"
        ).expect(1)
        #expect(run.lines.count == 3)
        #expect(run.lines[0].hasPrefix("failed  \(cluster.url("none.jpg"))  not_found: "))
        #expect(run.lines[1].hasPrefix("ok      \(cluster.url("coffee.jpg"))  80x53  jpeg  "))
        #expect(run.lines[2].hasPrefix("failed  \(cluster.url("README.md"))  unsupported_format"))
        #expect(!run.output.contains("\u{1b}"), "color and progress appear only on a terminal")
        run.expectNoErrors()
    }

    @Test func submitWritesImagesDeliveredInline() async throws {
        let folder = TemporaryFolder("inline")
        let url = cluster.url("rocket.jpg")
        let run = try await cluster.run(
            "submit", url, "--width", "90", "--max-age=-1", "--format", "png", "--output", folder.path
        ).expect(0)
        #expect(run.output.contains("\(folder.path)/rocket-90x60.png"))
        #expect(folder.read("rocket-90x60.png").starts(with: [0x89, 0x50, 0x4e, 0x47]))
        try await cluster.run("get", url, "--width", "90", "--format", "png").expect(3)
        await folder.remove()
    }

    @Test func submitSendsJobsOfAFileToTheirLanes() async throws {
        let lines = """
            # two jobs
            \(cluster.url("coffee.jpg"))

            {"source": "\(cluster.url("rocket.jpg"))", "width": 33, "priority": "low", "id": "own-id"}
            """
        let run = try await cluster.run(
            "submit", "--from-file", "-", "--width", "66", "--lane", "high", "--json", input: lines)
        let jobs = try run.expect(0).json()
        #expect(jobs.map { $0.at("topic") } == ["halcyon.jobs.high", "halcyon.jobs.low"])
        #expect(jobs[1].at("id") == "own-id")
        let event = try await cluster.run(
            "events", "--since", "beginning", "--job", "own-id", "--type", "ready", "--limit", "1"
        ).expect(0)
        #expect(try event.json().first?.at("data", "key") == jobs[1].at("key"))
    }

    @Test func reportsUnknownFields() async throws {
        let job = #"{"source":"initials:J","width":8,"widht":9}"#
        let waited = try await cluster.run("submit", "--from-file", "-", "--wait", "--json", input: job).expect(0)
        #expect(waited.errors.contains(#"warning: unknown field "widht""#))
        let end = try #require(try waited.json().first)
        #expect(end.at("warnings") == #"["unknown field \"widht\""]"#)
        let event = try await cluster.run(
            "events", "--since", "1h", "--job", try #require(end.at("id")), "--type", "ready", "--limit", "1"
        ).expect(0)
        #expect(try event.json().first?.at("data", "warnings") == #"["unknown field \"widht\""]"#)
        let strict = try await cluster.run("submit", "--from-file", "-", "--set", "jobs.strict=true", input: job)
        #expect(strict.expect(2).errors.contains("widht: unknown field"))
    }

    @Test func eventsAreFilteredAndLimited() async throws {
        let (source, other) = (cluster.url("hubble.jpg"), cluster.url("missing.jpg"))
        try await cluster.run(
            "submit", source, other, "--width", "70", "--wait", "--metadata", #"{"a": [1]}"#, "--alt-text", "true"
        ).expect(1)
        let ready = try await cluster.run(
            "events", "--since", "beginning", "--source", source, "--type", "ready", "--limit", "1")
        let event = try #require(try ready.expect(0).json().first)
        #expect(event.at("subject") == source && event.at("data", "job", "metadata") == #"{"a":[1]}"#)
        #expect(event.member("data")?.member("job")?.member("altText")?.kind == .string)
        let failed = try await cluster.run(
            "events", "--since", "1h", "--source", other, "--type", "halcyon.image.failed", "--limit", "1")
        #expect(try failed.expect(0).json().first?.at("data", "code") == "not_found")
    }

    @Test func eventsEndsOnASignalOrAClosedPipe() async throws {
        try await Executable.runInterrupted(["events"], environment: cluster.environment) { folder in
            try await until("an event is seen") {
                try await cluster.run("submit", cluster.url("coffee.jpg"), "--width", "20", "--wait")
                return !folder.read("output").isEmpty
            }
        }.expect(0)
        let piped = try await ChildProcess.start(
            "/bin/sh",
            ["-c", "\"$0\" events --since beginning | head -1 | grep -q specversion", HalcyonExecutable.path],
            options: {
                var options = ChildProcess.Options()
                options.environment = cluster.environment.merging(["PATH": "/usr/bin:/bin"]) { $1 }
                return options
            }())
        // The command notices the closed pipe when it writes another event.
        try await until("the pipe has ended") {
            try await cluster.run("submit", cluster.url("coffee.jpg"), "--width", "20", "--wait")
            return !piped.isRunning
        }
        #expect(await piped.exit() == .code(0))
    }

    private static let timeouts = [4, 16, 64]

    /// Runs a command that fails at its timeout. The timeout includes the time to connect and to send, so it is longer
    /// in each run until one `hasConnected`.
    private func runWithTimeouts(_ arguments: [String], until hasConnected: (Run) -> Bool) async throws -> Run {
        var last: Run?
        for timeout in Self.timeouts {
            let run = try await Executable.run(
                arguments + ["--timeout", "\(timeout)s"], environment: cluster.environment
            ).expect(1)
            if hasConnected(run) { return run }
            last = run
        }
        return try #require(last)
    }

    @Test func submitStopsWaitingOnTimeoutOrSignal() async throws {
        // An origin that never answers.
        let origin = RawOrigin { _ in [.awaitEnd] }
        let late = try await runWithTimeouts(["submit", origin.url("/a.jpg"), "--wait"]) { run in
            run.output.hasPrefix("pending ")
        }
        let outputs = Self.timeouts.map { "pending \(origin.url("/a.jpg"))  not finished within \($0).0 s\n" }
        #expect(outputs.contains(late.output), "\(late.output)\(late.errors)")

        let run = try await Executable.runInterrupted(
            ["submit", origin.url("/b.jpg"), "--wait"], environment: cluster.environment
        ) { _ in
            try await until("the job has begun") { origin.requests.contains { $0.path == "/b.jpg" } }
        }.expect(130)
        #expect(run.errors.contains("interrupted"))
        // The job has not failed.
        #expect(run.output == "pending \(origin.url("/b.jpg"))  no longer waited for\n")
        try await origin.stop()
    }

    @Test func doctorReportsAHealthyCluster() async throws {
        // The doctor waits five seconds for Kafka.
        let run = try await firstValue("the cluster is healthy") { () async throws -> Run? in
            let run = try await cluster.run("doctor", "--json")
            return run.exit == .code(0) ? run : nil
        }
        let report = try #require(try run.json().first)
        #expect(report.at("healthy") == "true")
        var subjects: [String: String] = [:]
        try report.member("findings")?.forEachElement { finding in
            let subject = finding.at("subject")
            // Other tests submit jobs at the same time, and not every libvips has all formats.
            let mayWarn = ["lag", "reading", "writing"].contains(subject) && finding.at("level") == "warning"
            if !mayWarn { #expect(finding.at("level") == "ok", "\(finding.at("message") ?? "")") }
            if finding.at("level") == "ok" { subjects[finding.at("subject") ?? ""] = finding.at("message") }
        }
        #expect(subjects["Redis"]?.contains("redis://127.0.0.1:\(cluster.redisPort)") == true)
        for library in ["libvips 8.", "libcurl ", "librdkafka ", "hiredis ", "simdjson ", "libcrypto "] {
            #expect(subjects["libraries"]?.contains(library) == true)
        }
        #expect(subjects["writing"]?.hasPrefix("jpeg, png, webp, avif, gif, tiff") == true)
        #expect(subjects["reading"]?.hasPrefix("jpeg, png, webp, gif, tiff, heif (avif") == true)
        #expect(subjects["fonts"] != nil)
        try await until("the doctor has reached the broker") {
            try await cluster.run("doctor").output.contains("ok       Kafka      1 broker at \(cluster.kafka)")
        }
    }

    @Test func topicsReportsExistingAndMissingTopics() async throws {
        let list = try await cluster.run("topics", "list", "--json").expect(0).json()
        #expect(
            list.map { $0.at("topic") } == [
                "halcyon.jobs.high", "halcyon.jobs", "halcyon.jobs.low", "halcyon.retry.10s", "halcyon.retry.1m",
                "halcyon.retry.10m", "halcyon.delay.10s", "halcyon.delay.2m", "halcyon.delay.30m", "halcyon.overflow",
                "halcyon.events",
                "halcyon.webhooks.10s", "halcyon.webhooks.1m",
                "halcyon.webhooks.10m", "halcyon.webhooks.60m", "halcyon.dead", "halcyon.control",
                "halcyon.batches",
            ])
        let create = try await cluster.run("topics", "create").expect(0)
        #expect(create.lines.count == 18 && create.lines.allSatisfy { $0.contains(": already exists, 8 partitions") })
        try await cluster.run("topics", "list", "--prefix", "other.").expect(3)
        let other = try await cluster.run("submit", cluster.url("coffee.jpg"), "--prefix", "other.").expect(1)
        #expect(other.errors.contains("there is no topic other.jobs") && other.errors.contains("halcyon topics create"))
    }

    @Test func submitsASamplePhotographWithTheWrittenVariables() async throws {
        let variables = Executable.text(cluster.folder.read("dev.env"))
        let redis = "redis://127.0.0.1:\(cluster.redisPort)"
        #expect(variables == "export HALCYON_KAFKA_BROKERS=\(cluster.kafka) HALCYON_REDIS_URL=\(redis)\n")
        for name in ["astronaut", "chelsea", "coffee"] {
            let run = try await cluster.run(
                "submit", "\(cluster.gateway)/samples/\(name).jpg", "--width", "51", "--wait", "--json"
            ).expect(0)
            let outcome = try #require(try run.json().first)
            #expect(outcome.at("outcome") == "ready")
        }
        let sample = try await cluster.response(to: "/samples/coffee.jpg")
        #expect(sample.hasPrefix("HTTP/1.1 200 ") && sample.contains("\r\nCache-Control: max-age=3600\r\n"))
        let unknown = try await cluster.response(to: "/samples/dog.jpg")
        #expect(unknown.hasPrefix("HTTP/1.1 404 ") && unknown.contains("astronaut.jpg, chelsea.jpg, coffee.jpg"))
    }

    @Test(arguments: [
        (["security.protocol=ssl"], "SSL handshake failed"),
        (
            [
                "security.protocol=sasl_plaintext", "sasl.mechanism=SCRAM-SHA-512", "sasl.username=a",
                "sasl.password=b",
            ], "SASL Handshake not supported by broker"
        ),
    ])
    func rejectedCredentialsOfKafkaAreExplained(properties: [String], reason: String) async throws {
        let settings = properties.flatMap { ["--set", "kafka.properties.\($0)"] }
        let submit = try await runWithTimeouts(["submit", "initials:A"] + settings) { $0.errors.contains(reason) }
        #expect(submit.errors.contains(reason) && submit.errors.contains("check kafka.properties"), "\(submit.errors)")
        // The doctor may give up before its first connection has failed.
        let doctor = try await firstValue("the doctor reports the reason") { () async throws -> Run? in
            let run = try await Executable.run(["doctor", "--json"] + settings, environment: cluster.environment)
            return run.output.contains(reason) ? run : nil
        }
        let finding = try doctor.json().flatMap { report in
            var findings: [JSONElement] = []
            try report.member("findings")?.forEachElement { findings.append($0) }
            return findings
        }.first { $0.at("subject") == "Kafka" }
        #expect(
            finding?.at("level") == "broken" && finding?.at("message")?.contains(reason) == true, "\(doctor.output)")
        #expect(finding?.at("remedy")?.contains("kafka.properties") == true)
    }

    @Test func addressInUseIsExplained() async throws {
        let address = "127.0.0.1:\(try #require(cluster.gatewayPort))"
        let run = try await cluster.run("gateway", "--set", "gateway.listen=\(address)").expect(1)
        #expect(run.errors.contains("Address already in use; stop the other program, or use any free port: "))
        #expect(run.errors.contains("--set gateway.listen=127.0.0.1:0"))
    }

    @Test func devPrintsOneLineOfJSON() async throws {
        #expect(Executable.text(cluster.folder.read("output")).split(separator: "\n").count == 1)
    }
}
