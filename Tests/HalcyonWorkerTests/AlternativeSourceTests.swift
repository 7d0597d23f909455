import Concurrency
import HalcyonModel
import HalcyonWorker
import Telemetry
import TestSupport
import Testing

/// Alternative sources and fallback pictures, as observed at real origins.
@Suite(.limitedParallelism) struct AlternativeSourceTests {
    /// Runs `body` beside a worker and two origins. The first one serves `/good`, `/late` from the third request on, and
    /// `/broken`, which is no image. The second one serves `/good` alone.
    private static func withOrigins(
        _ change: @escaping (inout WorkerOptions) -> Void = { _ in }, metrics: Metrics = Metrics(),
        _ body: (WorkerFixture, RawOrigin, RawOrigin) async throws -> Void
    ) async throws {
        let photograph = try SampleImages.bytes()
        let late = Lock(0)
        let origin = RawOrigin { request in
            switch request.path {
            case "/good": RawOrigin.Step.response(photograph, ["Cache-Control: max-age=600"])
            case "/broken": RawOrigin.Step.response(Array("no image".utf8))
            case "/late"
            where late.withLock({ count in
                count += 1; return count > 2
            }):
                RawOrigin.Step.response(photograph)
            case "/late", "/down": RawOrigin.answer("503 Service Unavailable")
            default: RawOrigin.answer("404 Not Found")
            }
        }
        let mirror = RawOrigin { request in
            request.path == "/good"
                ? RawOrigin.Step.response(photograph, ["Cache-Control: max-age=600"])
                : RawOrigin.answer("404 Not Found")
        }
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker(metrics: metrics, change) { try await body(cluster, origin, mirror) }
        }
        try await origin.stop()
        try await mirror.stop()
    }

    private static func job(
        _ cluster: WorkerFixture, _ source: String, _ fields: String = ""
    ) async throws -> EventLog.Entry {
        let id = "job-\(Int.random(in: 0..<1_000_000_000))"
        try await cluster.submit(#"{"id":"\#(id)","source":"\#(source)","width":30\#(fields)}"#)
        return try await cluster.events.terminal(of: id)
    }

    @Test(arguments: ["/none", "/broken", "/down"]) func alternativesAreTriedInOrder(path: String) async throws {
        try await Self.withOrigins { cluster, origin, mirror async throws in
            let good = mirror.url("/good")
            let ready = try await Self.job(
                cluster, origin.url(path), #","alternatives":["\#(mirror.url("/none"))","\#(good)"]"#)
            #expect(ready.kind == "ready" && ready.origin == "network")
            #expect(ready.data["alternative"] as? String == good)
            #expect(ready.data["fallback"] == nil && ready.json["subject"] as? String == origin.url(path))
            #expect(mirror.requests.map(\.path) == ["/none", "/good"])
            // The result is that of the alternative.
            let own = try await Self.job(cluster, good)
            #expect(own.origin == "memory" && own.key == ready.key && own.data["alternative"] == nil)
            let again = try await Self.job(cluster, origin.url(path), #","alternatives":["\#(good)"]"#)
            #expect(again.origin == "memory" && again.key == ready.key)
            #expect(again.data["alternative"] as? String == good)
        }
    }

    @Test func theOwnSourceIsPreferred() async throws {
        try await Self.withOrigins { cluster, origin, mirror async throws in
            let ready = try await Self.job(
                cluster, origin.url("/good"), #","alternatives":["\#(mirror.url("/good"))"]"#)
            #expect(ready.kind == "ready" && ready.data["alternative"] == nil && mirror.requests.isEmpty)
        }
    }

    /// Header fields may be credentials.
    @Test func headersAreNotSentToOtherOrigins() async throws {
        try await Self.withOrigins { cluster, origin, mirror async throws in
            let ready = try await Self.job(
                cluster, origin.url("/none"),
                #","headers":{"X-Token":"s3cr3t"},"alternatives":["\#(origin.url("/missing"))","\#(mirror.url("/good"))"]"#
            )
            #expect(ready.kind == "ready")
            #expect(origin.requests.count == 2 && origin.requests.allSatisfy { $0.head.contains("s3cr3t") })
            #expect(mirror.requests.count == 1 && !mirror.requests[0].head.contains("s3cr3t"))
        }
    }

    @Test func aJobFailsIfAllSourcesFail() async throws {
        try await Self.withOrigins { cluster, origin, mirror async throws in
            let failed = try await Self.job(
                cluster, origin.url("/none"),
                #","alternatives":["\#(origin.url("/broken"))","\#(mirror.url("/none"))"]"#)
            #expect(failed.kind == "failed" && failed.code == "not_found")
            #expect(failed.message.hasSuffix("; no alternative source succeeded (unsupported_format, not_found)"))
        }
    }

    /// A retry may fix the failure of an alternative.
    @Test func aRetryableAlternativeIsTriedAgain() async throws {
        try await Self.withOrigins({ RetryTests.useShortBackoff(&$0) }) { cluster, origin, mirror async throws in
            let ready = try await Self.job(
                cluster, mirror.url("/none"), #","alternatives":["\#(origin.url("/late"))"]"#)
            #expect(ready.kind == "ready" && ready.data["attempts"] as? Int == 3)
            #expect(ready.data["alternative"] as? String == origin.url("/late"))
        }
    }

    @Test func theFallbackIsNeverTheResultOfTheJob() async throws {
        let metrics = Metrics()
        try await Self.withOrigins(metrics: metrics) { cluster, origin, mirror async throws in
            let fields = #","fallback":"\#(mirror.url("/good"))""#
            let ready = try await Self.job(cluster, origin.url("/none"), fields)
            #expect(ready.kind == "ready" && ready.variant["width"] as? Int == 30)
            let reason = ready.data["fallback"] as? [String: Any]
            #expect(reason?["code"] as? String == "not_found" && reason?["retryable"] as? Bool == false)
            #expect(ready.data["alternative"] == nil)
            let own = try await Self.job(cluster, mirror.url("/good"))
            #expect(own.origin == "memory" && own.key == ready.key && own.data["fallback"] == nil)
            // Nothing is stored for the source of the job.
            #expect(try await Self.job(cluster, origin.url("/none")).code == "not_found")
            #expect(try await cluster.storedKeys().filter { !$0.hasSuffix(":source") } == [own.key])
            // Jobs are counted after their events.
            try await until("the fallback is counted") {
                metrics.value(of: #"halcyon_fallbacks_total{code="not_found"}"#) == 1
            }
        }
    }

    /// The fallback comes after all attempts and all alternatives.
    @Test func theFallbackComesLast() async throws {
        let options: (inout WorkerOptions) -> Void = {
            RetryTests.useShortBackoff(&$0)
            $0.retries.attempts = 2
            $0.reader.fallback = .initials(try! Initials("S"))
        }
        try await Self.withOrigins(options) { cluster, origin, mirror async throws in
            let ready = try await Self.job(
                cluster, origin.url("/down"), #","alternatives":["\#(mirror.url("/none"))"]"#)
            #expect(ready.kind == "ready" && ready.data["attempts"] as? Int == 2)
            #expect((ready.data["fallback"] as? [String: Any])?["code"] as? String == "http_error")
            #expect(origin.requests.count == 2)
            #expect(try await Self.job(cluster, origin.url("/none"), #","fallback":false"#).kind == "failed")
        }
    }

    @Test func aFailingFallbackLeavesTheFailure() async throws {
        try await Self.withOrigins { cluster, origin, mirror async throws in
            let failed = try await Self.job(
                cluster, origin.url("/broken"), #","fallback":"\#(mirror.url("/none"))""#)
            #expect(failed.kind == "failed" && failed.code == "unsupported_format")
        }
    }
}
