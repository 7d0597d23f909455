import Concurrency
import HalcyonCluster
import HalcyonModel
import HalcyonWorker
import Redis
import Telemetry
import TestSupport
import Testing

/// Jobs whose variants are uploaded with HTTP PUT.
@Suite(.limitedParallelism) struct PutVariantTests {
    private let photographs: RawOrigin

    init() throws {
        photographs = try SampleImages.origin()
    }

    private func job(_ id: String, _ variants: String, put: String, _ members: String = "") -> String {
        #"{"id":"\#(id)","source":"\#(photographs.url("/a"))","height":60,"variants":[\#(variants)],"#
            + #""delivery":{"put":\#(put)}\#(members)}"#
    }

    private static let sizes = #"{"name":"small","width":30},{"width":60,"format":"webp"},{"name":"large","width":90}"#

    /// Returns a server that responds to each path with the status returned by `status`.
    private static func target(_ status: @escaping @Sendable (String) -> String = { _ in "201 Created" }) -> RawOrigin {
        RawOrigin { RawOrigin.answer(status($0.path)) }
    }

    private func addresses(_ event: EventLog.Entry) -> [String?] { event.variants.map { $0["put"] as? String } }

    @Test func templateGivesEachVariantItsURL() async throws {
        let (target, metrics) = (Self.target(), Metrics())
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker(metrics: metrics, { $0.results.inlineLimit = 0 }) {
                let template = target.url(
                    "/items/7/{variant}.{format}?v={index}-{width}x{height}", host: "user:s3cr3t@127.0.0.1")
                try await cluster.submit(job("a", Self.sizes, put: "\"\(template)\""))
                let ready = try await cluster.events.terminal(of: "a")
                #expect(ready.kind == "ready")
                #expect(ready.variants.map { $0["name"] as? String } == ["small", nil, "large"])
                #expect(
                    addresses(ready) == ["small.jpeg", "1.webp", "large.jpeg"].map { target.url("/items/7/\($0)") })
                let bodies = Dictionary(grouping: target.requests, by: \.path).mapValues { $0.map(\.body) }
                let files = ["small.jpeg?v=0-30x20", "1.webp?v=1-60x40", "large.jpeg?v=2-90x60"]
                let paths = files.map { "/items/7/\($0)" }
                #expect(bodies.keys.sorted() == paths.sorted())
                for (path, variant) in zip(paths, ready.variants) {
                    let key = try #require(variant["key"] as? String)
                    #expect(try await cluster.client.send("HGET", .string(key), "body").bytes == bodies[path]?[0])
                    #expect(bodies[path]?.count == 1 && variant["data"] == nil)
                }
                #expect(metrics.value(of: #"halcyon_puts_total{outcome="delivered"}"#) == 3)
                #expect(!"\(cluster.events.all.map(\.json))".contains("s3cr3t"))

                // Cached results are uploaded as well.
                try await cluster.submit(job("b", Self.sizes, put: "\"\(target.url("/{key}/{index}"))\""))
                let kept = try await cluster.events.terminal(of: "b")
                #expect(kept.origin == "memory" && target.requests.count == 6)
                let key = try #require(ResultKey(kept.key))
                #expect(addresses(kept)[0] == target.url("/\(key.sourceHash)-\(key.variantHash)/0"))
            }
        }
        try await target.stop()
        try await photographs.stop()
    }

    @Test func eachVariantHasItsOwnSignedURL() async throws {
        let (one, other) = (Self.target(), Self.target())
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker {
                let put =
                    #"{"small":"\#(one.url("/s3cr3t-a?sig=s3cr3t"))","1":"\#(other.url("/b?sig=s3cr3t"))","#
                    + #""large":"\#(one.url("/c?sig=s3cr3t"))"}"#
                try await cluster.submit(job("a", Self.sizes, put: put))
                let ready = try await cluster.events.terminal(of: "a")
                #expect(ready.kind == "ready")
                // The whole URL may be a secret, so the event has only its origin.
                #expect(addresses(ready) == [one.url(""), other.url(""), one.url("")])
                #expect(one.requests.map(\.path).sorted() == ["/c?sig=s3cr3t", "/s3cr3t-a?sig=s3cr3t"])
                #expect(other.requests.map(\.path) == ["/b?sig=s3cr3t"])
                #expect(!"\(cluster.events.all.map(\.json))".contains("s3cr3t"))
            }
        }
        try await one.stop()
        try await other.stop()
        try await photographs.stop()
    }

    @Test func failureNamesTheVariantAndTheUploadsBefore() async throws {
        // The refused upload is the last one.
        let metrics = Metrics()
        let target = RawOrigin { request in
            guard request.path == "/1" else { return RawOrigin.answer() }
            return [.wait(until: { metrics.value(of: #"halcyon_puts_total{outcome="delivered"}"#) == 2 })]
                + RawOrigin.answer("403 Forbidden")
        }
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker(metrics: metrics, RetryTests.useShortBackoff) {
                try await cluster.submit(job("a", Self.sizes, put: "\"\(target.url("/{index}"))\""))
                let failed = try await cluster.events.terminal(of: "a")
                #expect(failed.kind == "failed" && failed.code == "http_error")
                #expect(
                    failed.message
                        == "variants[1]: putting the result at 127.0.0.1: it answered 403; uploaded before: variants[0], "
                        + "variants[2]")
                #expect(target.requests.count == 3)
            }
        }
        try await target.stop()
        try await photographs.stop()
    }

    @Test func partialJobReportsRefusedUploads() async throws {
        let target = Self.target { $0 == "/1" ? "403 Forbidden" : "200 OK" }
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker({ $0.images.outputPixels = 10_000 }) {
                let variants = Self.sizes + #",{"name":"huge","width":400,"height":300}"#
                try await cluster.submit(
                    job("a", variants, put: "\"\(target.url("/{index}"))\"", #","partial":true"#))
                let ready = try await cluster.events.terminal(of: "a")
                #expect(ready.kind == "ready" && addresses(ready) == [target.url("/0"), target.url("/2")])
                #expect(ready.variants.map { $0["name"] as? String } == ["small", "large"])
                let failures = ready.data["failures"] as? [[String: Any]] ?? []
                #expect(failures.map { $0["variant"] as? Int } == [1, 3])
                #expect(failures.map { $0["code"] as? String } == ["http_error", "too_many_pixels"])
                #expect(
                    failures.first?["message"] as? String
                        == "variants[1]: putting the result at 127.0.0.1: it answered 403")

                let one = #"{"width":30},{"width":31}"#
                try await cluster.submit(job("b", one, put: "\"\(target.url("/1?{index}"))\"", #","partial":true"#))
                #expect(try await cluster.events.terminal(of: "b").kind == "ready")
                try await cluster.submit(
                    job("c", #"{"name":"1","width":30}"#, put: "\"\(target.url("/{variant}"))\"", #","partial":true"#))
                #expect(try await cluster.events.terminal(of: "c").code == "http_error")
            }
        }
        try await target.stop()
        try await photographs.stop()
    }

    @Test func rejectsVariantsWithTheSameURL() async throws {
        let target = Self.target()
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker {
                try await cluster.submit(job("a", Self.sizes, put: "\"\(target.url("/{format}"))\""))
                let failed = try await cluster.events.terminal(of: "a")
                #expect(failed.code == "invalid_job" && failed.data["retryable"] as? Bool == false)
                #expect(
                    failed.message
                        == "delivery.put: variants[0] and variants[2] have the same URL; add a placeholder such as "
                        + "{variant}")
                #expect(target.requests.isEmpty)
            }
        }
        try await target.stop()
        try await photographs.stop()
    }

    /// A retry uploads only what has not been uploaded, in the same worker or, through a topic, in any worker.
    @Test(arguments: [false, true]) func retryRepeatsNoCompletedUpload(throughTopic: Bool) async throws {
        let answers = Lock(["503 Service Unavailable", "429 Too Many Requests"])
        let target = Self.target { path in
            path == "/1" ? answers.withLock { $0.popLast() } ?? "200 OK" : "200 OK"
        }
        let metrics = Metrics()
        try await WorkerFixture.with(topics: RetryTopicTests.shortDelays) { cluster in
            try await cluster.withWorker(metrics: metrics) {
                RetryTests.useShortBackoff(&$0)
                if throughTopic { RetryTopicTests.useRetryTopics(&$0) }
            } _: {
                try await cluster.submit(job("a", Self.sizes, put: "\"\(target.url("/{index}"))\""))
                let ready = try await cluster.events.terminal(of: "a")
                #expect(ready.kind == "ready" && ready.data["attempts"] as? Int == 3)
                #expect(addresses(ready) == (0..<3).map { target.url("/\($0)") })
                #expect(target.requests.map(\.path).sorted() == ["/0", "/1", "/1", "/1", "/2"])
                #expect(metrics.value(of: #"halcyon_puts_total{outcome="skipped"}"#) == 4)
                #expect(metrics.value(of: #"halcyon_puts_total{outcome="failed"}"#) == 2)
                #expect(photographs.requests.count == 1)
            }
        }
        try await target.stop()
        try await photographs.stop()
    }

    // MARK: Limits of targets

    /// Jobs for a target that does not respond are more than the window of their partition.
    @Test func slowTargetDelaysNoOtherJobs() async throws {
        let (isStuck, metrics) = (Lock(true), Metrics())
        let slow = RawOrigin { _ in [.wait(until: { !isStuck.withLock { $0 } })] + RawOrigin.answer() }
        let fast = Self.target()
        let topics = Topics(retryDelays: [.milliseconds(200)])
        try await WorkerFixture.with(partitions: 1, topics: topics) { cluster in
            try await cluster.withWorker(metrics: metrics) {
                $0.consumer.window = 8
                ($0.putTargets.concurrency, $0.putTargets.queue) = (2, 2)
                $0.putPatience = .milliseconds(10)
                // Postponed jobs are not given up, although failed ones would be.
                $0.retries = .once
            } _: {
                let variants = #"{"width":30}"#
                for number in 0..<40 {
                    try await cluster.submit(
                        job("slow\(number)", variants, put: "\"\(slow.url("/\(number)"))\""))
                }
                for number in 0..<20 {
                    try await cluster.submit(
                        job("fast\(number)", variants, put: "\"\(fast.url("/\(number)"))\""))
                }
                for number in 0..<20 {
                    #expect(try await cluster.events.terminal(of: "fast\(number)").kind == "ready")
                }
                #expect(cluster.events.terminal.allSatisfy { $0.jobID.hasPrefix("fast") })
                #expect(slow.requests.count <= 2)
                #expect(metrics.value(of: #"halcyon_puts_total{outcome="postponed"}"#) >= 30)
                isStuck.withLock { $0 = false }
                for number in 0..<40 {
                    let ready = try await cluster.events.terminal(of: "slow\(number)")
                    // A postponed job has made no attempt.
                    #expect(ready.kind == "ready" && ready.data["attempts"] == nil, "\(ready.json)")
                }
                #expect(Set(slow.requests.map(\.path)).count == 40)
                #expect(try await cluster.deadLetterCount() == 0)
            }
        }
        try await slow.stop()
        try await fast.stop()
        try await photographs.stop()
    }

    /// A job whose variants go to a slow and a fast target uploads to the fast one once.
    @Test func slowTargetDelaysNoOtherVariantOfTheJob() async throws {
        let isStuck = Lock(true)
        let slow = RawOrigin { _ in [.wait(until: { !isStuck.withLock { $0 } })] + RawOrigin.answer() }
        let fast = Self.target()
        try await WorkerFixture.with(topics: Topics(retryDelays: [.milliseconds(200)])) { cluster in
            try await cluster.withWorker {
                ($0.putTargets.concurrency, $0.putTargets.queue) = (1, 0)
                $0.putPatience = .zero
            } _: {
                try await cluster.submit(job("hold", #"{"width":30}"#, put: "\"\(slow.url("/hold"))\""))
                try await until("the slow target is busy") { slow.requests.count == 1 }
                let variants = #"{"name":"a","width":30},{"name":"b","width":31}"#
                try await cluster.submit(
                    job("both", variants, put: #"{"a":"\#(slow.url("/a"))","b":"\#(fast.url("/b"))"}"#))
                try await until("the fast target has its upload") { fast.requests.count == 1 }
                isStuck.withLock { $0 = false }
                let ready = try await cluster.events.terminal(of: "both")
                #expect(ready.kind == "ready" && addresses(ready) == [slow.url(""), fast.url("")])
                #expect(fast.requests.count == 1 && slow.requests.map(\.path) == ["/hold", "/a"])
            }
        }
        try await slow.stop()
        try await fast.stop()
        try await photographs.stop()
    }

    @Test func jobsForATargetThatIsDownAreDeliveredAfterItsRecovery() async throws {
        let (isUp, metrics) = (Lock(false), Metrics())
        let target = RawOrigin { _ in RawOrigin.answer(isUp.withLock { $0 } ? "200 OK" : "502 Bad Gateway") }
        try await WorkerFixture.with(topics: Topics(retryDelays: [.milliseconds(300)])) { cluster in
            try await cluster.withWorker(metrics: metrics) {
                RetryTests.useShortBackoff(&$0)
                $0.retries.attempts = 1000
                $0.putTargets.failures = 2
            } _: {
                for number in 0..<30 {
                    try await cluster.submit(
                        job("\(number)", #"{"width":30}"#, put: "\"\(target.url("/\(number)"))\""))
                }
                try await until("jobs are postponed") {
                    metrics.value(of: #"halcyon_puts_total{outcome="postponed"}"#) > 20
                }
                #expect(cluster.events.terminal.isEmpty)
                isUp.withLock { $0 = true }
                for number in 0..<30 {
                    #expect(try await cluster.events.terminal(of: "\(number)").kind == "ready")
                }
                #expect(try await cluster.deadLetterCount() == 0)
            }
        }
        try await target.stop()
        try await photographs.stop()
    }

    /// A response that rejects one URL does not count against its host.
    @Test func refusedUploadsDoNotOpenTheCircuitBreaker() async throws {
        let (target, metrics) = (Self.target { $0 == "/good" ? "200 OK" : "403 Forbidden" }, Metrics())
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker(metrics: metrics, { $0.putTargets.failures = 1 }) {
                for number in 0..<5 {
                    try await cluster.submit(
                        job("\(number)", #"{"width":30}"#, put: "\"\(target.url("/\(number)"))\""))
                    #expect(try await cluster.events.terminal(of: "\(number)").code == "http_error")
                }
                try await cluster.submit(job("good", #"{"width":30}"#, put: "\"\(target.url("/good"))\""))
                #expect(try await cluster.events.terminal(of: "good").kind == "ready")
                #expect(metrics.value(of: #"halcyon_puts_total{outcome="postponed"}"#) == 0)
            }
        }
        try await target.stop()
        try await photographs.stop()
    }

    @Test func postponedJobEndsWithItsBudgetAsADeadLetter() async throws {
        let slow = RawOrigin { _ in [.awaitEnd] }
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker {
                ($0.putTargets.concurrency, $0.putTargets.queue) = (1, 0)
                $0.retries.budget = 0
            } _: {
                try await cluster.submit(job("hold", #"{"width":30}"#, put: "\"\(slow.url("/hold"))\""))
                try await until("the slow target is busy") { slow.requests.count == 1 }
                try await cluster.submit(job("a", Self.sizes, put: "\"\(slow.url("/{index}"))\""))
                let failed = try await cluster.events.terminal(of: "a")
                #expect(failed.code == "origin_unavailable" && failed.data["retryable"] as? Bool == true)
                #expect(
                    failed.message
                        == "variants[0]: putting the result at 127.0.0.1: the host is down or has too many uploads "
                        + "waiting")
                let letters = try await cluster.deadLetters(atLeast: 1).compactMap(DeadLetter.init)
                #expect(letters.count == 1 && slow.requests.count == 1)
                try await cluster.publish(.cancel(.job("hold")))
                #expect(try await cluster.events.terminal(of: "hold").kind == "cancelled")
            }
        }
        try await slow.stop()
        try await photographs.stop()
    }

    /// Without retry topics, a postponed job waits in the worker.
    @Test func postponedJobWaitsInTheWorkerWithoutRetryTopics() async throws {
        let isStuck = Lock(true)
        let slow = RawOrigin { _ in [.wait(until: { !isStuck.withLock { $0 } })] + RawOrigin.answer() }
        let metrics = Metrics()
        try await WorkerFixture.with(topics: Topics(retryDelays: [])) { cluster in
            try await cluster.withWorker(metrics: metrics) {
                ($0.putTargets.concurrency, $0.putTargets.queue) = (1, 0)
                $0.retries = .once
                ($0.retries.base, $0.retries.inProcess) = (0.02, 0.01)
            } _: {
                for id in ["a", "b"] {
                    try await cluster.submit(job(id, #"{"width":30}"#, put: "\"\(slow.url("/\(id)"))\""))
                }
                try await until("one job is postponed") {
                    metrics.value(of: #"halcyon_puts_total{outcome="postponed"}"#) > 0
                }
                isStuck.withLock { $0 = false }
                for id in ["a", "b"] { #expect(try await cluster.events.terminal(of: id).kind == "ready") }
            }
        }
        try await slow.stop()
        try await photographs.stop()
    }
}
