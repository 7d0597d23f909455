import HalcyonCluster
import HalcyonModel
import HalcyonWorker
import Kafka
import Telemetry
import TestSupport
import Testing

/// Jobs that fail and are tried again by the worker that has them.
@Suite(.limitedParallelism) struct RetryTests {
    /// Short waits, and no memory of failures.
    static func inHaste(_ options: inout WorkerOptions) {
        options.retries = RetryPolicy()
        options.retries.base = 0.02
        options.sourceTier.failures.failing = 0
    }

    /// Waits that last longer than any test.
    static func atLeisure(_ options: inout WorkerOptions) {
        inHaste(&options)
        options.retries.inProcess = 3600
    }

    static let later = ["Retry-After: 600"]

    static func retries(_ metrics: Metrics, _ way: String = "process") -> Double {
        metrics.value(of: #"halcyon_retries_total{code="http_error",way="\#(way)"}"#)
    }

    @Test func anOriginThatFailsTwiceIsAskedUntilItServes() async throws {
        let (origin, metrics) = (try FlakyOrigin(failing: 2), Metrics())
        try await WorkerTestCluster.with { cluster in
            try await cluster.withWorker(metrics: metrics, Self.inHaste) {
                try await cluster.submit(origin.job("a"))
                let ready = try await cluster.events.terminal(of: "a")
                #expect(ready.kind == "ready" && ready.data["attempts"] as? Int == 3)
                #expect(origin.requests(of: "a") == 3 && Self.retries(metrics) == 2)
                try await CancelTests.expectOneEnd(cluster, of: "a")
                #expect(cluster.events.all.count { $0.kind == "started" && $0.jobID == "a" } == 1)
                #expect(try await cluster.deadCount() == 0)
                // What was right at once says nothing of attempts.
                #expect(try await cluster.events.terminal(of: "marker").data["attempts"] == nil)
            }
        }
        try await origin.stop()
    }

    @Test func aFailureThatIsRememberedIsNotTriedAgainOutOfMemory() async throws {
        let origin = try FlakyOrigin(failing: 2)
        try await WorkerTestCluster.with { cluster in
            try await cluster.withWorker {
                $0.retries = RetryPolicy()
                $0.retries.base = 0.001
                $0.retries.attempts = 3
                // Remembered for longer than any of the waits.
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

    @Test func retryAfterIsWaitedFor() async throws {
        let origin = try FlakyOrigin(failing: 1, headers: ["Retry-After: 1"])
        try await WorkerTestCluster.with { cluster in
            try await cluster.withWorker(Self.inHaste) {
                try await cluster.submit(origin.job("a"))
                let ready = try await cluster.events.terminal(of: "a")
                #expect(ready.kind == "ready" && ready.data["attempts"] as? Int == 2)
                let total = (ready.data["timings"] as? [String: Any])?["total"] as? Double ?? 0
                #expect(total >= 1000)
            }
        }
        try await origin.stop()
    }

    @Test func whatFailsForGoodIsToldOnceAndPutAsideWithItsHistory() async throws {
        let (origin, metrics) = (try FlakyOrigin(failing: .max), Metrics())
        try await WorkerTestCluster.with { cluster in
            try await cluster.withWorker(metrics: metrics) {
                Self.inHaste(&$0)
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
                #expect(metrics.value(of: #"halcyon_dead_letters_total{code="http_error"}"#) == 1)
                try await CancelTests.expectOneEnd(cluster, of: "a")
            }
        }
        try await origin.stop()
    }

    @Test func whatWouldFailAgainIsNeitherTriedAgainNorPutAside() async throws {
        let origin = RawOrigin { _ in RawOrigin.answer("404 Not Found") }
        try await WorkerTestCluster.with { cluster in
            try await cluster.withWorker(Self.inHaste) {
                try await cluster.submit(CancelTests.job("a", origin))
                let failed = try await cluster.events.terminal(of: "a")
                #expect(failed.code == "not_found" && failed.data["attempts"] as? Int == 1)
                #expect(try await cluster.deadCount() == 0 && origin.requests.count == 1)
            }
        }
        try await origin.stop()
    }

    @Test func whoWaitsHoldsUpNobodyAndCanBeCancelled() async throws {
        let (origin, metrics) = (try FlakyOrigin(failing: 1, headers: Self.later), Metrics())
        let well = try FlakyOrigin(failing: 0)
        try await WorkerTestCluster.with(partitions: 1) { cluster in
            try await cluster.withWorker(metrics: metrics) {
                Self.atLeisure(&$0)
                ($0.fetches, $0.concurrency, $0.origins.concurrency) = (1, 1, 1)
            } _: {
                try await cluster.submit(origin.job("waits"))
                try await until("it waits") { Self.retries(metrics) == 1 }
                for number in 0..<20 { try await cluster.submit(well.job("n\(number)")) }
                for number in 0..<20 {
                    #expect(try await cluster.events.terminal(of: "n\(number)").kind == "ready")
                }
                #expect(cluster.events.terminal.allSatisfy { $0.jobID != "waits" })
                try await cluster.tell(.cancel("waits"))
                #expect(try await cluster.events.terminal(of: "waits").kind == "cancelled")
                try await CancelTests.expectOneEnd(cluster, of: "waits")
            }
        }
        try await origin.stop()
        try await well.stop()
    }

    @Test func aNewerJobForItsSlotEndsTheWait() async throws {
        let (origin, metrics) = (try FlakyOrigin(failing: 1, headers: Self.later), Metrics())
        try await WorkerTestCluster.with { cluster in
            try await cluster.withWorker(metrics: metrics, Self.atLeisure) {
                try await cluster.submit(origin.job("old", #","slot":"cell","generation":1"#))
                try await until("it waits") { Self.retries(metrics) == 1 }
                try await cluster.submit(
                    #"{"id":"new","source":"initials:N","width":8,"height":8,"slot":"cell","generation":2}"#)
                #expect(try await cluster.events.terminal(of: "old").kind == "superseded")
                #expect(try await cluster.events.terminal(of: "new").kind == "ready")
            }
        }
        try await origin.stop()
    }

    @Test func whatComesAfterTheDeadlineIsNotTried() async throws {
        let origin = try FlakyOrigin(failing: 1, headers: Self.later)
        try await WorkerTestCluster.with { cluster in
            try await cluster.withWorker(Self.atLeisure) {
                try await cluster.submit(origin.job("a", #","deadline":300"#))
                // Long before its deadline: what is told is what happened.
                let failed = try await cluster.events.terminal(of: "a")
                #expect(failed.code == "http_error" && failed.data["attempts"] as? Int == 1)
                #expect(try await cluster.deadCount() == 0)
            }
        }
        try await origin.stop()
    }

    @Test func whoWaitsIsHandedBackWhenTheWorkerLeaves() async throws {
        let (origin, metrics) = (try FlakyOrigin(failing: 1, headers: Self.later), Metrics())
        try await WorkerTestCluster.with { cluster in
            var options = cluster.options
            Self.atLeisure(&options)
            let worker = try await Worker.start(options, log: .silent, metrics: metrics)
            await worker.ready()
            try await cluster.submit(origin.job("a"))
            try await until("it waits") { Self.retries(metrics) == 1 }
            // Whoever waited for it would wait for ten minutes.
            #expect(await worker.shutdown(gracePeriod: .seconds(3600)) == 0)
            #expect(cluster.events.terminal.isEmpty)
            try await cluster.withWorker(Self.atLeisure) {
                let end = try await cluster.events.terminal(of: "a")
                #expect(end.kind == "ready")
            }
            try await until("all is read") { cluster.events.terminal.count == 1 }
        }
        try await origin.stop()
    }
}
