import HalcyonCluster
import HalcyonModel
import HalcyonWorker
import Kafka
import Telemetry
import TestSupport
import Testing

/// Jobs that fail and are retried by the same worker.
@Suite(.limitedParallelism) struct RetryTests {
    /// Sets a short backoff, and disables the negative cache.
    static func useShortBackoff(_ options: inout WorkerOptions) {
        options.retries = RetryPolicy()
        options.retries.base = 0.02
        options.sourceTier.failures.failing = 0
    }

    /// Like ``useShortBackoff(_:)``, and lets retries wait in the worker for longer than any test.
    static func allowLongWaits(_ options: inout WorkerOptions) {
        useShortBackoff(&options)
        options.retries.inProcess = 3600
    }

    static let longRetryAfter = ["Retry-After: 600"]

    static func retries(_ metrics: Metrics, _ way: String = "process") -> Double {
        metrics.value(of: #"halcyon_retries_total{code="http_error",way="\#(way)"}"#)
    }

    @Test func retriesUntilTheOriginSucceeds() async throws {
        let (origin, metrics) = (try FlakyOrigin(failing: 2), Metrics())
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker(metrics: metrics, Self.useShortBackoff) {
                try await cluster.submit(origin.job("a"))
                let ready = try await cluster.events.terminal(of: "a")
                #expect(ready.kind == "ready" && ready.data["attempts"] as? Int == 3)
                #expect(origin.requests(of: "a") == 3 && Self.retries(metrics) == 2)
                try await CancelTests.expectOneTerminalEvent(cluster, of: "a")
                #expect(cluster.events.all.count { $0.kind == "started" && $0.jobID == "a" } == 1)
                #expect(try await cluster.deadLetterCount() == 0)
                // The event of a job that succeeds at once has no attempts.
                #expect(try await cluster.events.terminal(of: "marker").data["attempts"] == nil)
            }
        }
        try await origin.stop()
    }

    @Test func retriesAreNotServedByTheNegativeCache() async throws {
        let origin = try FlakyOrigin(failing: 2)
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker {
                $0.retries = RetryPolicy()
                $0.retries.base = 0.001
                $0.retries.attempts = 3
                // Cached for longer than any backoff.
                $0.sourceTier.failures.failing = 0.5
            } _: {
                try await cluster.submit(origin.job("a"))
                let ready = try await cluster.events.terminal(of: "a")
                #expect(ready.kind == "ready" && ready.data["attempts"] as? Int == 3)
                #expect(origin.requests(of: "a") == 3)
            }
        }
        try await origin.stop()
    }

    @Test func waitsForRetryAfter() async throws {
        let origin = try FlakyOrigin(failing: 1, headers: ["Retry-After: 1"])
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker(Self.useShortBackoff) {
                try await cluster.submit(origin.job("a"))
                let ready = try await cluster.events.terminal(of: "a")
                #expect(ready.kind == "ready" && ready.data["attempts"] as? Int == 2)
                let total = (ready.data["timings"] as? [String: Any])?["total"] as? Double ?? 0
                #expect(total >= 1000)
            }
        }
        try await origin.stop()
    }

    @Test func exhaustedRetriesBecomeOneDeadLetterWithHistory() async throws {
        let (origin, metrics) = (try FlakyOrigin(failing: .max), Metrics())
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker(metrics: metrics) {
                Self.useShortBackoff(&$0)
                $0.retries.attempts = 3
            } _: {
                let job = origin.job("a", #","metadata":7"#)
                try await cluster.producer.send(
                    ProducerRecord(
                        topic: cluster.topics.jobs(.high), key: Array("k".utf8), value: Array(job.utf8),
                        headers: [RecordHeader("mine", "too")]))
                let failed = try await cluster.events.terminal(of: "a")
                #expect(failed.kind == "failed" && failed.code == "http_error")
                #expect(failed.data["attempts"] as? Int == 3 && failed.data["retryable"] as? Bool == true)
                #expect(origin.requests(of: "a") == 3)
                let letter = try #require(DeadLetter(try await cluster.deadLetters(atLeast: 1)[0]))
                #expect(letter.code == "http_error" && letter.reason == .attempts && letter.message == failed.message)
                #expect(letter.record.value == Array(job.utf8) && letter.record.key == Array("k".utf8))
                #expect(letter.headers == [RecordHeader("mine", "too")])
                #expect(
                    letter.history?.count == 3
                        && letter.history?.attempts.map(\.code) == [.httpError, .httpError, .httpError])
                #expect(letter.provenance.map { "\($0.coordinates)-ended" } == failed.json["id"] as? String)
                // Jobs are counted after their events.
                try await until("the dead letter is counted") {
                    metrics.value(of: #"halcyon_dead_letters_total{code="http_error"}"#) == 1
                }
                try await CancelTests.expectOneTerminalEvent(cluster, of: "a")
            }
        }
        try await origin.stop()
    }

    @Test func permanentFailureIsNeitherRetriedNorDeadLettered() async throws {
        let origin = RawOrigin { _ in RawOrigin.answer("404 Not Found") }
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker(Self.useShortBackoff) {
                try await cluster.submit(CancelTests.job("a", origin))
                let failed = try await cluster.events.terminal(of: "a")
                #expect(failed.code == "not_found" && failed.data["attempts"] as? Int == 1)
                #expect(try await cluster.deadLetterCount() == 0 && origin.requests.count == 1)
            }
        }
        try await origin.stop()
    }

    /// A dead letter is shortened to the beginning of its value. Its key stays.
    @Test func aJobEndsAlthoughItsDeadLetterIsTooLarge() async throws {
        let (origin, sink, metrics) = (try FlakyOrigin(failing: .max), RecordingLogSink(), Metrics())
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker(log: Log(level: .warning, sink: sink), metrics: metrics) {
                let job = Array(origin.job("a", #","metadata":7"#).utf8)
                // Kafka accepts the record, but not with a few more headers.
                let key = [UInt8](repeating: 0x6b, count: 999_900 - job.count)
                try await cluster.producer.send(
                    ProducerRecord(topic: cluster.topics.jobs(.normal), key: key, value: job))
                let failed = try await cluster.events.terminal(of: "a")
                let metadata = (failed.data["job"] as? [String: Any])?["metadata"] as? Int
                #expect(failed.code == "http_error" && metadata == 7)
                try await until("the loss is logged") {
                    sink.count("dead letter not written: its key and headers exceed Kafka's message size limit") == 1
                }
                #expect(try await cluster.deadLetterCount() == 0)
                #expect(metrics.value(of: #"halcyon_dead_letters_total{code="http_error"}"#) == 0)
            }
        }
        try await origin.stop()
    }

    @Test func aFailedJobReportsTheStagesOfItsLastAttempt() async throws {
        let origin = RawOrigin { request in
            request.path == "/broken"
                ? RawOrigin.Step.response(Array("no image".utf8)) : RawOrigin.answer("404 Not Found")
        }
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker {
                for id in ["none", "broken"] {
                    let source = origin.url("/\(id)")
                    try await cluster.submit(#"{"id":"\#(id)","source":"\#(source)","width":8,"height":8}"#)
                    let failed = try await cluster.events.terminal(of: id)
                    let timings = failed.data["timings"] as? [String: Double] ?? [:]
                    #expect(failed.kind == "failed" && timings["decode"] == nil)
                    let (fetch, total) = (timings["fetch"] ?? -1, timings["total"] ?? -1)
                    #expect(fetch >= 0 && total >= fetch, "\(id): \(timings)")
                }
            }
        }
        try await origin.stop()
    }

    @Test func waitingRetryBlocksNoJobsAndCanBeCancelled() async throws {
        let (origin, metrics) = (try FlakyOrigin(failing: 1, headers: Self.longRetryAfter), Metrics())
        let reliable = try FlakyOrigin(failing: 0)
        try await WorkerFixture.with(partitions: 1) { cluster in
            try await cluster.withWorker(metrics: metrics) {
                Self.allowLongWaits(&$0)
                ($0.fetches, $0.concurrency, $0.origins.concurrency) = (1, 1, 1)
            } _: {
                try await cluster.submit(origin.job("waits"))
                try await until("the retry waits") { Self.retries(metrics) == 1 }
                for number in 0..<20 { try await cluster.submit(reliable.job("n\(number)")) }
                for number in 0..<20 {
                    #expect(try await cluster.events.terminal(of: "n\(number)").kind == "ready")
                }
                #expect(cluster.events.terminal.allSatisfy { $0.jobID != "waits" })
                try await cluster.publish(.cancel(.job("waits")))
                #expect(try await cluster.events.terminal(of: "waits").kind == "cancelled")
                try await CancelTests.expectOneTerminalEvent(cluster, of: "waits")
            }
        }
        try await origin.stop()
        try await reliable.stop()
    }

    @Test func waitingRetryCountsTowardsNoLimitOfItsTenant() async throws {
        let (origin, metrics) = (try FlakyOrigin(failing: 1, headers: Self.longRetryAfter), Metrics())
        let (reliable, tenant) = (try FlakyOrigin(failing: 0), #","tenant":"shop""#)
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker(metrics: metrics) {
                Self.allowLongWaits(&$0)
                $0.tenants.limits.inFlight["shop"] = 1
            } _: {
                try await cluster.submit(origin.job("waits", tenant))
                try await until("the retry waits") { Self.retries(metrics) == 1 }
                for id in ["first", "second"] {
                    try await cluster.submit(reliable.job(id, tenant))
                    #expect(try await cluster.events.terminal(of: id).kind == "ready")
                }
                #expect(cluster.events.terminal.allSatisfy { $0.jobID != "waits" })
            }
        }
        try await origin.stop()
        try await reliable.stop()
    }

    @Test func newerGenerationSupersedesAWaitingRetry() async throws {
        let (origin, metrics) = (try FlakyOrigin(failing: 1, headers: Self.longRetryAfter), Metrics())
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker(metrics: metrics, Self.allowLongWaits) {
                try await CancelTests.waitForSubscriptions(1, cluster)
                try await cluster.submit(origin.job("old", #","slot":"cell","generation":1"#))
                try await until("the retry waits") { Self.retries(metrics) == 1 }
                try await cluster.submit(
                    #"{"id":"new","source":"initials:N","width":8,"height":8,"slot":"cell","generation":2}"#)
                #expect(try await cluster.events.terminal(of: "old").kind == "superseded")
                #expect(try await cluster.events.terminal(of: "new").kind == "ready")
            }
        }
        try await origin.stop()
    }

    @Test func doesNotRetryAfterTheDeadline() async throws {
        let origin = try FlakyOrigin(failing: 1, headers: Self.longRetryAfter)
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker(Self.allowLongWaits) {
                try await cluster.submit(origin.job("a", #","deadline":300"#))
                // Long before the deadline: the event reports the actual failure.
                let failed = try await cluster.events.terminal(of: "a")
                #expect(failed.code == "http_error" && failed.data["attempts"] as? Int == 1)
                #expect(try await cluster.deadLetterCount() == 0)
            }
        }
        try await origin.stop()
    }

    @Test func shutdownReturnsWaitingRetriesToTheQueue() async throws {
        let (origin, metrics) = (try FlakyOrigin(failing: 1, headers: Self.longRetryAfter), Metrics())
        try await WorkerFixture.with { cluster in
            var options = cluster.options
            Self.allowLongWaits(&options)
            let worker = try await Worker.start(options, log: .silent, metrics: metrics)
            await worker.ready()
            try await cluster.submit(origin.job("a"))
            try await until("the retry waits") { Self.retries(metrics) == 1 }
            // Waiting for the retry would take ten minutes.
            #expect(await worker.shutdown(gracePeriod: .seconds(3600)) == 0)
            #expect(cluster.events.terminal.isEmpty)
            try await cluster.withWorker(Self.allowLongWaits) {
                let end = try await cluster.events.terminal(of: "a")
                #expect(end.kind == "ready")
            }
            try await until("all events are read") { cluster.events.terminal.count == 1 }
        }
        try await origin.stop()
    }
}
