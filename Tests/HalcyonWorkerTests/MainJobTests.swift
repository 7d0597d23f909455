import Foundation
import HalcyonCluster
import Kafka
import Redis
import Telemetry
import TestSupport
import Testing

@Suite(.limitedParallelism) struct MainJobTests {
    @Test func jobPublishesAnEventAndStoresTheImage() async throws {
        let photograph = try SampleImages.bytes()
        let origin = RawOrigin { _ in
            RawOrigin.Step.response(
                photograph, ["Cache-Control: max-age=600", "ETag: \"v1\"", "Content-Type: image/jpeg"])
        }
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker {
                let url = origin.url("/rocket.jpg")
                try await cluster.submit(
                    #"{"id":"one","source":"\#(url)","width":400,"height":300,"metadata":{"row":7},"altText":"a rocket"}"#
                )
                let ready = try await cluster.events.terminal(of: "one")
                #expect(ready.kind == "ready")
                #expect(ready.json["specversion"] as? String == "1.0")
                #expect(ready.json["subject"] as? String == url)
                #expect(ready.origin == "network")
                let job = try #require(ready.data["job"] as? [String: Any])
                #expect((job["metadata"] as? [String: Int]) == ["row": 7])
                #expect(job["altText"] as? String == "a rocket")
                #expect(ready.variant["width"] as? Int == 400 && ready.variant["height"] as? Int == 300)
                #expect(ready.variant["format"] as? String == "jpeg")
                let source = try #require(ready.data["source"] as? [String: Any])
                #expect(source["etag"] as? String == "\"v1\"" && source["status"] as? Int == 200)
                #expect(source["width"] as? Int == 640 && source["height"] as? Int == 427)

                let ttl = try await cluster.client.send("PTTL", .string(ready.key)).integer ?? 0
                #expect((300_000...600_000).contains(ttl))
                let body = try #require(try await cluster.client.send("HGET", .string(ready.key), "body").bytes)
                #expect(body.count == ready.variant["bytes"] as? Int)
                #expect(body.starts(with: [0xff, 0xd8, 0xff]))
                #expect(cluster.events.all.filter { $0.jobID == "one" }.map(\.kind) == ["started", "ready"])
            }
        }
        try await origin.stop()
    }

    @Test func equalJobIsServedFromTheResultCache() async throws {
        let origin = try SampleImages.origin()
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker {
                let job = #""source":"\#(origin.url("/a"))","width":90,"height":90"#
                try await cluster.submit("{\"id\":\"first\",\(job)}")
                let first = try await cluster.events.terminal(of: "first")
                try await cluster.submit("{\"id\":\"second\",\(job),\"maxAge\":5}")
                let second = try await cluster.events.terminal(of: "second")
                #expect(second.origin == "memory")
                #expect(second.key == first.key)
                #expect(second.variant["sha256"] as? String == first.variant["sha256"] as? String)
                #expect(second.data["expiresAt"] as? String == first.data["expiresAt"] as? String)
                #expect(origin.requests.count == 1)
            }
        }
        try await origin.stop()
    }

    @Test(arguments: [(700 << 10, true), (100, false)])
    func inlineDeliveryAppliesUpToItsLimit(limit: Int, isCarried: Bool) async throws {
        let origin = try SampleImages.origin()
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker({ $0.results.inlineLimit = limit }) {
                let job = #""source":"\#(origin.url("/a"))","width":90,"height":90,"delivery":"inline""#
                for (id, source) in [("made", "network"), ("found", "memory")] {
                    try await cluster.submit("{\"id\":\"\(id)\",\(job)}")
                    let ready = try await cluster.events.terminal(of: id)
                    #expect(ready.origin == source)
                    #expect((ready.variant["data"] != nil) == isCarried)
                    #expect(try await cluster.client.send("EXISTS", .string(ready.key)).integer == 1)
                }
            }
        }
        try await origin.stop()
    }

    @Test func jobWithoutIDIsNamedAfterItsRecord() async throws {
        let origin = try SampleImages.origin([])
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker {
                try await cluster.submit(#"{"source":"\#(origin.url("/a"))"}"#)
                try await until("a terminal event") { !cluster.events.terminal.isEmpty }
                let event = try #require(cluster.events.terminal.first)
                #expect(event.jobID.wholeMatch(of: /halcyon\.jobs-[01]-0/) != nil)
                #expect(event.variant["width"] as? Int == 640)
            }
        }
        try await origin.stop()
    }

    @Test(arguments: [(#""maxAge":-1"#, "max-age=600"), (#""maxAge":0"#, "no-store")])
    func unstorableResultIsSentInline(field: String, cacheControl: String) async throws {
        let origin = try SampleImages.origin(["Cache-Control: \(cacheControl)"])
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker {
                try await cluster.submit(
                    #"{"id":"a","source":"\#(origin.url("/a"))","width":64,"height":64,\#(field)}"#)
                let ready = try await cluster.events.terminal(of: "a")
                #expect(ready.kind == "ready")
                #expect(ready.data["expiresAt"] == nil)
                let data = try #require((ready.variant["data"] as? String).flatMap { Data(base64Encoded: $0) })
                #expect(data.count == ready.variant["bytes"] as? Int && data.starts(with: [0xff, 0xd8]))
                #expect(try await cluster.client.send("EXISTS", .string(ready.key)).integer == 0)
            }
        }
        try await origin.stop()
    }

    @Test func largeUnstorableResultIsHandedOver() async throws {
        let origin = try SampleImages.origin(["Cache-Control: no-store"])
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker({ $0.results.inlineLimit = 100 }) {
                try await cluster.submit(#"{"id":"a","source":"\#(origin.url("/a"))","width":64,"height":64}"#)
                let ready = try await cluster.events.terminal(of: "a")
                #expect(ready.key.contains(":handoff:"))
                #expect(try await cluster.client.send("HSTRLEN", .string(ready.key), "body").integer ?? 0 > 100)
                #expect(try await cluster.client.send("PTTL", .string(ready.key)).integer ?? 0 > 0)
            }
        }
        try await origin.stop()
    }

    @Test func jobWhoseEventIsTooLargeHasFailed() async throws {
        let metrics = Metrics()
        let (failed, ready) = (
            #"halcyon_jobs_total{lane="normal",outcome="failed",reason="internal"}"#,
            #"halcyon_jobs_total{lane="normal",outcome="ready",reason="network"}"#
        )
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker(metrics: metrics) {
                $0.kafka = KafkaProperties(
                    brokers: cluster.broker.bootstrapServers,
                    properties: ["message.max.bytes": "4000"] + MockCluster.fetchProperties)
            } _: {
                let metadata = String(repeating: "m", count: 8000)
                try await cluster.submit(
                    #"{"id":"large","source":"initials:A","width":9,"height":9,"metadata":"\#(metadata)"}"#)
                let event = try await cluster.events.terminal(of: "large")
                #expect(event.code == "internal" && event.message.contains("size limit"), "\(event.message)")
                try await until("the job is counted") { metrics.value(of: failed) == 1 }
                #expect(metrics.value(of: ready) == 0)
            }
        }
    }
}
