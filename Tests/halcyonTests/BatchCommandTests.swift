import HalcyonCluster
import HalcyonCoding
import HalcyonModel
import JSON
import Kafka
import Subprocess
import TestSupport
import Testing

@testable import HalcyonCLI

/// `halcyon batch`, on a cluster of `halcyon dev` with one attempt per job.
@Suite(.devCluster, .limitedParallelism, .serialized) struct BatchCommandTests {
    private var cluster: DevClusterFixture { DevClusterFixture.current }

    @Test func createsABatchAndWaitsForIt() async throws {
        let urls = ["initials:A", "# a comment", "", #"{"source":"initials:B","width":16}"#, "initials:C"]
        let run = try await cluster.run(
            "batch", "create", "-", "--id", "good", "--width", "8", "--height", "8", "--lane", "low", "--wait",
            input: urls.joined(separator: "\n"))
        run.expect(0)
        #expect(run.output == "good: completed, 3 of 3 jobs ended, 3 ready, 0 failed\n")
        let status = try await cluster.run("batch", "status", "good", "--json").expect(0).json()
        #expect(status.first?.at("state") == "completed" && status.first?.at("total") == "3")
        let list = try await cluster.run("batch", "list", "--json").expect(0).json()
        #expect(list.contains { $0.at("id") == "good" })
        #expect(try await cluster.run("batch", "list", "--limit", "1").expect(0).lines.count == 1)
        #expect(try await cluster.run("batch", "failures", "good").expect(0).output.isEmpty)
    }

    @Test func listsAndRetriesFailures() async throws {
        let port = LoopbackPort.reserve()
        let urls = ["initials:A", "http://127.0.0.1:\(port)/a.jpg", "http://127.0.0.1:\(port)/b.jpg"]
        let created = try await cluster.run(
            "batch", "create", "-", "--id", "bad", "--width", "8", "--wait", "--json",
            input: urls.joined(separator: "\n")
        ).expect(1).json()
        #expect(created.first?.at("state") == "completed" && created.first?.at("ended") == "3")
        let failures = try await cluster.run("batch", "failures", "bad", "--json").expect(0).json()
        #expect(Set(failures.map { $0.at("job") }) == ["bad-1", "bad-2"])
        #expect(failures.allSatisfy { $0.at("code") == "connect_error" })
        let text = try await cluster.run("batch", "failures", "bad").expect(0)
        #expect(text.lines.count == 2 && text.output.contains("bad-1: connect_error: "))

        let retried = try await cluster.run("batch", "retry", "bad", "--id", "second", "--wait").expect(1)
        #expect(retried.output == "second: completed, 2 of 2 jobs ended, 0 ready, 2 failed\n")
        let named = try await cluster.run("batch", "retry", "bad").expect(0)
        #expect(named.output.hasPrefix("bad-retry-") && named.output.hasSuffix(": 2 jobs submitted\n"))
        let report = try await cluster.run("batch", "retry", "bad", "--json").expect(0).json().first
        #expect(report?.at("batch")?.hasPrefix("bad-retry-") == true)
        #expect(report?.at("jobs") == "2" && report?.at("missing") == "0")
    }

    @Test func cancelsABatch() async throws {
        try await cluster.run("batch", "cancel", "called-off").expect(0)
        try await cluster.controlMessagesAreHandled()
        // Jobs that are submitted after the cancellation are cancelled too.
        let run = try await cluster.run(
            "batch", "create", "-", "--id", "called-off", "--width", "8", "--wait", input: "initials:A\ninitials:B")
        run.expect(0)
        #expect(run.output == "called-off: completed, 2 of 2 jobs ended, 0 ready, 0 failed, 2 cancelled\n")
        let report = try await cluster.run("batch", "cancel", "called-off", "--json").expect(0).json().first
        #expect(report?.at("batch") == "called-off" && report?.at("outcome") == "told")
    }

    /// A command that was interrupted is repeated.
    @Test func jobsOfARepeatedCommandCountOnce() async throws {
        for _ in 0..<2 {
            try await cluster.run(
                "batch", "create", "-", "--id", "twice", "--width", "8", input: "initials:A\ninitials:B"
            ).expect(0)
        }
        // The command waits ten seconds for the worker to read the first message of the batch.
        let run = try await firstValue("the batch is known") { () async throws -> Run? in
            let run = try await cluster.run("batch", "status", "twice", "--wait")
            return run.exit == .code(3) ? nil : run
        }
        run.expect(0)
        #expect(run.output == "twice: completed, 2 of 2 jobs ended, 2 ready, 0 failed\n")
    }

    @Test func hasAWorkerListAPrefix() async throws {
        let run = try await cluster.run(
            "batch", "create", "--s3-prefix", "s3://pictures/new/", "--id", "objects", "--width", "8"
        ).expect(0)
        #expect(run.output == "objects: a worker lists s3://pictures/new/\n")
        // The cluster has no object store.
        try await until("the batch is known") {
            try await cluster.run("batch", "status", "objects").output.hasPrefix(
                "objects: listing, 0 of 0 or more jobs")
        }
        try await cluster.run("batch", "cancel", "objects").expect(0)
        let end = try await cluster.run("batch", "status", "objects", "--wait").expect(0)
        #expect(end.output == "objects: completed, 0 of 0 jobs ended, 0 ready, 0 failed\n")
        for (arguments, reason) in [
            (["--s3-prefix", "s3://pictures"], "s3://bucket/path/"), (["-", "--s3-prefix", "s3://p-q/"], "exclude"),
            (["--s3-prefix", "s3://pictures/", "--width", "0"], "--width"), ([], "FILE or --s3-prefix"),
        ] {
            let run = try await Executable.run(["batch", "create"] + arguments, environment: cluster.environment)
                .expect(2)
            #expect(run.errors.contains(reason), "\(run.errors)")
        }
    }

    @Test func eventsOfABatchCanBeFollowed() async throws {
        try await cluster.run(
            "batch", "create", "-", "--id", "followed", "--width", "8", "--batch-webhook", "https://example.org/hook",
            "--wait", input: "initials:A\ninitials:B"
        ).expect(0)
        let completed = try await cluster.run(
            "events", "--batch", "followed", "--type", "batch.completed", "--since", "1h", "--limit", "1"
        ).expect(0).json()
        #expect(
            completed.first?.at("type") == "halcyon.batch.completed" && completed.first?.at("subject") == "followed")
        let all = try await cluster.run(
            "events", "--batch", "followed", "--type", "ready", "--since", "1h", "--limit", "2"
        )
        .expect(0).json()
        #expect(all.count == 2)
        let type = try await cluster.run("events", "--type", "batch.gone").expect(2)
        #expect(type.errors.contains("batch.completed"))
        let webhook = try await cluster.run(
            "batch", "create", "-", "--width", "8", "--batch-webhook", "https://u:p@x/", input: "initials:A"
        ).expect(2)
        #expect(webhook.errors.contains("--batch-webhook"))
    }

    @Test func rejectsInvalidInput() async throws {
        let line = try await cluster.run(
            "batch", "create", "-", "--id", "never", "--width", "8", input: "initials:A\n{\"source\":7}\n"
        ).expect(2)
        #expect(line.errors.contains("standard input:2: "))
        let member = try await cluster.run(
            "batch", "create", "-", "--width", "8", input: #"{"source":"initials:A","batch":"x"}"#
        ).expect(2)
        #expect(member.errors.contains("batch: "))
        #expect(
            try await cluster.run("batch", "create", "-", input: "\n# nothing\n").expect(2).errors.contains("no jobs"))
        #expect(try await cluster.run("batch", "status", "a b").expect(2).errors.contains("letters, digits"))
    }

    @Test(arguments: [["status"], ["status", "--wait"], ["failures"], ["retry"]])
    func unknownBatchesAreNotFound(command: [String]) async throws {
        let run = try await Executable.run(["batch"] + command + ["unknown"], environment: cluster.environment)
        run.expect(3)
        #expect(run.errors.contains("there is no batch unknown"))
    }
}

/// Submitting failed jobs again, on a mock broker.
@Suite(.limitedParallelism) struct BatchUploadTests {
    @Test func sendsFailedJobsInSlicesNumberedLikeTheirFailures() async throws {
        let (broker, topics) = (try MockCluster(), Topics())
        let lane = topics.jobs(.normal)
        try await broker.createTopics([lane, topics.batches], partitions: 1)
        let producer = try Producer(properties: ["bootstrap.servers": broker.bootstrapServers, "linger.ms": "0"])
        let job = Array(#"{"source":"initials:A","width":8,"batch":{"id":"first","index":7}}"#.utf8)
        for _ in 0..<3 { try await producer.send(ProducerRecord(topic: lane, partition: 0, value: job)) }
        // Kafka does not have the second one.
        let failures = [2, 99, 0].map { offset in
            BatchFailure(
                job: "job-\(offset)", index: nil, code: "timeout", message: "", record: "\(lane)-0-\(offset)")
        }
        let writer = BatchWriter("again", producer, topics: topics, reader: JobDecoder())
        let failed = FailedJobReader(topics, properties: broker.consumerProperties)
        let count = try await BatchUpload(writer: writer, webhook: nil).send(failures, failed, bytes: 1)
        #expect(count == 2)
        let reader = try await TopicReader.open(
            lane, from: .offsets([0: 3]), properties: broker.consumerProperties, within: .patience)
        var sent: [String] = []
        while sent.count < 2, let batch = try await reader.nextBatch() {
            for record in batch.records { sent.append(String(decoding: record.value ?? [], as: UTF8.self)) }
        }
        await reader.close()
        for (id, index) in [("job-2", 0), ("job-0", 2)] {
            let message = sent.first { $0.contains(#""id":"\#(id)""#) }
            #expect(message?.contains(#""batch":{"id":"again","index":\#(index)}"#) == true, "\(sent)")
        }
        await producer.close()
        await broker.stop()
    }
}
