import Concurrency
import HalcyonModel
import HalcyonSources
import HalcyonWorker
import Redis
import Telemetry
import TestSupport
import Testing

/// Results that are uploaded with HTTP PUT.
@Suite(.limitedParallelism) struct PutTests {
    private let photographs: RawOrigin

    init() throws {
        photographs = try SampleImages.origin(after: .milliseconds(100))
    }

    /// Returns a server that accepts uploads.
    private static func acceptingTarget(_ status: String = "201 Created") -> RawOrigin {
        RawOrigin { _ in RawOrigin.answer(status) }
    }

    private func job(_ id: String, at url: String, _ members: String = "") -> String {
        #"{"id":"\#(id)","source":"\#(photographs.url("/a"))","width":90,"height":60,"delivery":{"put":"\#(url)"}\#(members)}"#
    }

    private func body(_ cluster: WorkerFixture, _ event: EventLog.Entry) async throws -> [UInt8]? {
        try await cluster.client.send("HGET", .string(event.key), "body").bytes
    }

    @Test func uploadCompletesBeforeTheReadyEvent() async throws {
        let (target, metrics) = (Self.acceptingTarget(), Metrics())
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker(metrics: metrics) {
                try await cluster.submit(job("new", at: target.url("/new.jpg?signature=s3cr3t")))
                let ready = try await cluster.events.terminal(of: "new")
                #expect(ready.kind == "ready" && ready.origin == "network")
                let put = try #require(target.requests.first)
                #expect(put.head.hasPrefix("PUT /new.jpg?signature=s3cr3t HTTP/1.1\r\n"))
                #expect(put.head.lowercased().contains("content-type: image/jpeg"))
                #expect(!put.head.lowercased().contains("expect:"))
                #expect(try await body(cluster, ready) == put.body && put.body.starts(with: [0xff, 0xd8]))
                #expect(ready.variant["body"] == nil && ready.data["expiresAt"] != nil)

                // A cached result is uploaded as well.
                try await cluster.submit(job("kept", at: target.url("/kept.jpg")))
                let kept = try await cluster.events.terminal(of: "kept")
                #expect(kept.kind == "ready" && kept.origin == "memory")
                #expect(target.requests.count == 2 && target.requests[1].body == put.body)
                #expect(photographs.requests.count == 1)
                #expect(metrics.value(of: "halcyon_put_bytes_total") == Double(2 * put.body.count))
                #expect(!"\(cluster.events.all.map(\.json))".contains("s3cr3t"))
            }
        }
        try await target.stop()
        try await photographs.stop()
    }

    @Test func coalescedJobsEachUploadTheirResult() async throws {
        let target = Self.acceptingTarget("204 No Content")
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker {
                let ids = (0..<6).map { "job\($0)" }
                for id in ids { try await cluster.submit(job(id, at: target.url("/\(id)"))) }
                for id in ids { #expect(try await cluster.events.terminal(of: id).kind == "ready") }
                #expect(Set(target.requests.map(\.path)) == Set(ids.map { "/\($0)" }) && target.requests.count == 6)
                #expect(Set(target.requests.map(\.body)).count == 1 && photographs.requests.count == 1)
            }
        }
        try await target.stop()
        try await photographs.stop()
    }

    @Test(arguments: [#","maxAge":-1"#, #","cache":{"memory":false}"#])
    func unstorableResultIsOnlyUploaded(members: String) async throws {
        let target = Self.acceptingTarget("200 OK")
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker({ $0.results.inlineLimit = 0 }) {
                try await cluster.submit(job("once", at: target.url("/a"), members))
                let ready = try await cluster.events.terminal(of: "once")
                #expect(ready.kind == "ready" && ready.data["expiresAt"] == nil && ready.variant["body"] == nil)
                #expect(target.requests.count == 1 && target.requests[0].body.count == ready.variant["bytes"] as? Int)
                #expect(try await cluster.storedKeys().allSatisfy { $0.hasSuffix(":source") })
            }
        }
        try await target.stop()
        try await photographs.stop()
    }

    @Test func retriesUploadAfterTransientErrors() async throws {
        let answers = Lock(["503 Service Unavailable", "429 Too Many Requests"])
        let target = RawOrigin { _ in RawOrigin.answer(answers.withLock { $0.popLast() } ?? "200 OK") }
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker(RetryTests.useShortBackoff) {
                try await cluster.submit(job("a", at: target.url("/a")))
                let ready = try await cluster.events.terminal(of: "a")
                #expect(ready.kind == "ready" && ready.data["attempts"] as? Int == 3)
                #expect(target.requests.count == 3 && photographs.requests.count == 1)
                try await CancelTests.expectOneTerminalEvent(cluster, of: "a")
            }
        }
        try await target.stop()
        try await photographs.stop()
    }

    @Test func ignoresLargeResponseBodies() async throws {
        let target = RawOrigin { _ in
            [.text("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"), .zeros(1_000_000)]
        }
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker {
                try await cluster.submit(job("a", at: target.url("/a")))
                #expect(try await cluster.events.terminal(of: "a").kind == "ready")
                #expect(target.requests.count == 1)
            }
        }
        try await target.stop()
        try await photographs.stop()
    }

    @Test(arguments: ["403 Forbidden", "302 Found"]) func rejectedUploadFailsTheJob(status: String) async throws {
        let target = RawOrigin { request in
            request.path.hasPrefix("/else") ? RawOrigin.answer() : RawOrigin.answer(status, ["Location: /else"])
        }
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker(RetryTests.useShortBackoff) {
                try await cluster.submit(job("a", at: target.url("/a?signature=s3cr3t")))
                let failed = try await cluster.events.terminal(of: "a")
                #expect(failed.code == "http_error" && failed.data["retryable"] as? Bool == false)
                #expect(failed.message == "putting the result at 127.0.0.1: it answered \(status.prefix(3))")
                #expect(target.requests.count == 1)
                #expect(!"\(cluster.events.all.map(\.json))".contains("s3cr3t"))
            }
        }
        try await target.stop()
        try await photographs.stop()
    }

    @Test func uploadAddressesFollowTheSourcePolicy() async throws {
        let target = Self.acceptingTarget()
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker({ $0.sources.policy = AddressPolicy(allow: ["127.0.0.1/32"]) }) {
                try await cluster.submit(job("private", at: target.url("/a", host: "127.0.0.2")))
                let failed = try await cluster.events.terminal(of: "private")
                #expect(failed.code == "blocked_address" && failed.data["retryable"] as? Bool == false)
                #expect(failed.message.hasPrefix("putting the result at 127.0.0.2: "), "\(failed.message)")
                #expect(target.connections == 0)
                try await cluster.submit(job("allowed", at: target.url("/a")))
                #expect(try await cluster.events.terminal(of: "allowed").kind == "ready")
            }
        }
        try await target.stop()
        try await photographs.stop()
    }

    @Test func cancellationAbortsTheUpload() async throws {
        let target = RawOrigin { _ in [.awaitEnd] }
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker {
                $0.puts = 1
                $0.putPatience = .seconds(600)
            } _: {
                try await cluster.submit(job("a", at: target.url("/a")))
                try await until("the upload has started") { target.requests.count == 1 }
                // The second upload waits for a permit.
                try await cluster.submit(job("b", at: target.url("/b")))
                try await cluster.publish(.cancel(.job("a")))
                #expect(try await cluster.events.terminal(of: "a").kind == "cancelled")
                try await until("the upload is aborted") { target.cuts == 1 }
                try await until("the next upload has started") { target.requests.count == 2 }
                try await cluster.publish(.cancel(.job("b")))
                #expect(try await cluster.events.terminal(of: "b").kind == "cancelled")
            }
        }
        try await target.stop()
        try await photographs.stop()
    }
}
