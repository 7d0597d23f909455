import Formats
import HalcyonCluster
import HalcyonModel
import HalcyonWorker
import Kafka
import Telemetry
import TestSupport
import Testing

/// Jobs that fail and are retried later by any worker, through retry topics.
@Suite(.limitedParallelism) struct RetryTopicTests {
    static let shortDelays = Topics(retryDelays: [.milliseconds(200), .milliseconds(500)])
    static let longDelay = Topics(retryDelays: [.seconds(3600)])

    /// Sends all retries through topics.
    static func useRetryTopics(_ options: inout WorkerOptions) {
        RetryTests.useShortBackoff(&options)
        options.retries.inProcess = 0
    }

    @Test func jobKeepsItsIdentityAcrossRetryTopics() async throws {
        let origin = try FlakyOrigin(failing: 2)
        try await WorkerFixture.with(partitions: 3, topics: Self.shortDelays) { cluster in
            try await cluster.withWorkers(3, Self.useRetryTopics) { _ in
                // Without an id: the job is named after its record in the lane.
                let job = origin.job("x").replacing(#""id":"x","#, with: #""metadata":{"n":1},"#)
                try await cluster.submit(job, .high)
                try await until("the job has ended") { !cluster.events.terminal.isEmpty }
                let ready = cluster.events.terminal[0]
                // A record that is delivered again counts as another attempt.
                #expect(ready.kind == "ready" && (ready.data["attempts"] as? Int ?? 0) >= 3)
                #expect(ready.jobID.hasPrefix("halcyon.jobs.high-"))
                #expect(ready.json["id"] as? String == "\(ready.jobID)-ended")
                let started = cluster.events.all.filter { $0.kind == "started" }
                #expect(!started.isEmpty && started.allSatisfy { $0.jobID == ready.jobID })
                // Measured from the first submission, and longer than the shorter delay.
                let timings = ready.data["timings"] as? [String: Double] ?? [:]
                #expect(timings["queued", default: 0] >= 200)
                #expect(origin.requests(of: "x") >= 3)
                #expect(try await cluster.deadLetterCount() == 0)
            }
        }
        try await origin.stop()
    }

    @Test func manyFailingJobsEachEndOnce() async throws {
        let (origin, metrics) = (try FlakyOrigin(failing: 2), Metrics())
        let bad = try FlakyOrigin(failing: .max)
        try await WorkerFixture.with(topics: Self.shortDelays) { cluster in
            try await cluster.withWorker(metrics: metrics) {
                Self.useRetryTopics(&$0)
                $0.retries.attempts = 4
                // Disables the circuit breaker of the origin.
                $0.origins.failures = 0
                $0.consumer.window = 16
            } _: {
                for number in 0..<100 { try await cluster.submit(origin.job("good\(number)")) }
                for number in 0..<50 { try await cluster.submit(bad.job("bad\(number)")) }
                try await until("all jobs have ended") { Set(cluster.events.terminal.map(\.jobID)).count == 150 }
                #expect(cluster.events.terminal.count == 150)
                #expect(cluster.events.terminal.allSatisfy { ($0.kind == "ready") == $0.jobID.hasPrefix("good") })
                #expect(
                    cluster.events.terminal.filter { $0.kind == "failed" }.allSatisfy {
                        $0.data["attempts"] as? Int == 4
                    }
                )
                #expect(
                    cluster.events.terminal.filter { $0.kind == "ready" }.allSatisfy {
                        $0.data["attempts"] as? Int == 3
                    })
                let letters = try await cluster.deadLetters(atLeast: 50).compactMap(DeadLetter.init)
                #expect(letters.allSatisfy { $0.provenance?.topic == "halcyon.jobs" && $0.history?.count == 4 })
                #expect(try await cluster.deadLetterCount() == 50)
                // Jobs are counted after their retry was published.
                try await until("all retries are counted") {
                    RetryTests.retries(metrics, "topic") == 100 * 2 + 50 * 3
                }
            }
        }
        try await origin.stop()
        try await bad.stop()
    }

    @Test func delayedRetryCanBeCancelledAndExpires() async throws {
        let (origin, metrics) = (try FlakyOrigin(failing: 1), Metrics())
        try await WorkerFixture.with(topics: Self.longDelay) { cluster in
            try await cluster.withWorker(metrics: metrics) {
                Self.useRetryTopics(&$0)
                $0.retries.budget = 7200
            } _: {
                try await cluster.submit(origin.job("a"))
                try await until("the retry waits in the topic") { RetryTests.retries(metrics, "topic") == 1 }
                try await cluster.publish(.cancel(.job("a")))
                #expect(try await cluster.events.terminal(of: "a").kind == "cancelled")
                // A retry whose deadline passes while it waits.
                let record = ConsumedRecord(
                    topic: cluster.topics.jobs(.normal), partition: 0, offset: 9_000_000,
                    timestamp: Timestamp.now.milliseconds - 1000,
                    value: Array(origin.job("late", #","deadline":1.5"#).utf8))
                var history = AttemptHistory(began: record.timestamp)
                history.add(JobError(.timeout, "too slow"), at: record.timestamp + 500)
                let message = RetryMessage(
                    provenance: OriginalRecord(record), history: history, due: Timestamp.now.milliseconds + 3_000_000,
                    hasStarted: true)
                try await cluster.producer.send(message.record(of: record, to: cluster.topics.retries[0]))
                let late = try await cluster.events.terminal(of: "late")
                #expect(late.code == "expired" && late.data["attempts"] as? Int == 1)
                #expect(late.message.contains("timeout: too slow") && origin.requests(of: "late") == 0)
            }
        }
        try await origin.stop()
    }

    @Test func shutdownLeavesDelayedRetryToTheNextWorker() async throws {
        let (origin, metrics) = (try FlakyOrigin(failing: 1), Metrics())
        let topics = Topics(retryDelays: [.seconds(4)])
        try await WorkerFixture.with(topics: topics) { cluster in
            var options = cluster.options
            Self.useRetryTopics(&options)
            let worker = try await Worker.start(options, log: .silent, metrics: metrics)
            await worker.ready()
            try await cluster.submit(origin.job("a"))
            try await until("the retry waits in the topic") { RetryTests.retries(metrics, "topic") == 1 }
            #expect(await worker.shutdown(gracePeriod: .seconds(3600)) == 0)
            try await cluster.withWorker(Self.useRetryTopics) {
                let ready = try await cluster.events.terminal(of: "a")
                #expect(ready.kind == "ready" && ready.data["attempts"] as? Int == 2)
            }
            #expect(cluster.events.terminal.count == 1 && origin.requests(of: "a") == 2)
        }
        try await origin.stop()
    }

    @Test func rejectsForeignRecordsInRetryTopics() async throws {
        try await WorkerFixture.with(topics: Self.shortDelays) { cluster in
            try await cluster.withWorker(Self.useRetryTopics) {
                let job = #"{"id":"stray","source":"initials:S","width":8,"height":8}"#
                let headers: [[RecordHeader]] = [
                    [], [RecordHeader("halcyon-due", "soon")],
                    // All required headers, but not from a lane.
                    RetryMessage(
                        provenance: OriginalRecord(
                            ConsumedRecord(topic: "else", partition: 0, offset: 0, timestamp: 0, value: nil)),
                        history: AttemptHistory(began: 0, count: 1), due: 0, hasStarted: false
                    ).record(of: ConsumedRecord(topic: "else", partition: 0, offset: 0, value: nil), to: "").headers,
                ]
                for headers in headers {
                    try await cluster.producer.send(
                        ProducerRecord(topic: cluster.topics.retries[0], value: Array(job.utf8), headers: headers))
                }
                let letters = try await cluster.deadLetters(atLeast: 3).compactMap(DeadLetter.init)
                #expect(letters.allSatisfy { $0.code == "invalid_job" && $0.record.value == Array(job.utf8) })
                try await until("the failures are published") { cluster.events.terminal.count == 3 }
                #expect(cluster.events.terminal.allSatisfy { $0.code == "invalid_job" && $0.jobID == "stray" })
            }
        }
    }

    @Test func jobTooLargeForARetryTopicIsNotRetried() async throws {
        let origin = try FlakyOrigin(failing: .max)
        try await WorkerFixture.with(topics: Self.shortDelays) { cluster in
            try await cluster.withWorker(Self.useRetryTopics) {
                // Kafka accepts the record, but not with a few more headers.
                let job = origin.job("large")
                try await cluster.submit(job + String(repeating: " ", count: 999_900 - job.utf8.count))
                let failed = try await cluster.events.terminal(of: "large")
                #expect(failed.code == "http_error" && failed.data["attempts"] as? Int == 1)
                let letter = try #require(try await cluster.deadLetters(atLeast: 1).first)
                #expect(letter.value?.count == 64 << 10)
                let cut = letter.headers.last { $0.name == "halcyon-cut" }
                #expect(cut?.value.map { String(decoding: $0, as: UTF8.self) } == "999900")
            }
        }
        try await origin.stop()
    }
}
