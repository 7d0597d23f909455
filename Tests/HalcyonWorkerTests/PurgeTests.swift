import Concurrency
import Foundation
import HalcyonCluster
import HalcyonModel
import HalcyonWorker
import Redis
import Telemetry
import TestSupport
import Testing

/// Purges during and after jobs, with complete workers.
@Suite(.limitedParallelism) struct PurgeTests {
    /// Runs `body` beside a worker and an origin whose ETag changes with each request. The first response is delayed
    /// until the latch is open.
    private static func withOrigin(
        redis kind: RedisDeployment.Kind = .server, metrics: Metrics = Metrics(),
        _ change: @escaping (inout WorkerOptions) -> Void = { _ in },
        _ body: (WorkerFixture, RawOrigin, Latch) async throws -> Void
    ) async throws {
        let photograph = try SampleImages.bytes()
        let (gate, count) = (Latch(), Lock(0))
        let origin = RawOrigin { _ in
            let number = count.withLock { count in
                count += 1
                return count
            }
            if number == 1 { gate.wait() }
            return RawOrigin.Step.response(photograph, ["Cache-Control: max-age=600", "ETag: \"v\(number)\""])
        }
        try await WorkerFixture.with(redis: kind) { cluster in
            try await cluster.withWorker(metrics: metrics, change) { try await body(cluster, origin, gate) }
        }
        try await origin.stop()
    }

    private static func job(_ id: String, _ origin: RawOrigin, _ members: String = "") -> String {
        #"{"id":"\#(id)","source":"\#(origin.url("/a"))","width":64,"height":64\#(members)}"#
    }

    private func version(_ cluster: WorkerFixture, of key: String) async throws -> String? {
        guard let facts = try await cluster.client.send("HGET", .string(key), "facts").string else { return nil }
        return facts.contains("v1") ? "v1" : "v2"
    }

    @Test(arguments: RedisDeployment.Kind.allCases)
    func sourcePurgedDuringItsFetchIsFetchedAgain(on kind: RedisDeployment.Kind) async throws {
        try await Self.withOrigin(redis: kind) { cluster, origin, gate in
            try await cluster.submit(Self.job("a", origin))
            try await until("the transfer has started") { origin.requests.count == 1 }
            let purge = Purge(.source(try Source(origin.url("/a"))))
            #expect(try await Purger(cluster.client).run(purge) == 0)
            try await cluster.publish(.purge(purge))
            gate.open()
            let ready = try await cluster.events.terminal(of: "a")
            #expect(ready.kind == "ready" && origin.requests.count == 2)
            #expect(try await version(cluster, of: ready.key) == "v2")
            // The cached source is the new version too.
            try await cluster.submit(Self.job("b", origin, #","format":"png""#))
            let other = try await cluster.events.terminal(of: "b")
            #expect(other.origin == "source-cache")
            #expect(try await version(cluster, of: other.key) == "v2")
        }
    }

    @Test func purgingAKeyKeepsItsCachedSource() async throws {
        try await Self.withOrigin { cluster, origin, gate in
            let source = try Source(origin.url("/a"))
            gate.open()
            try await cluster.submit(Self.job("first", origin))
            let key = try await cluster.events.terminal(of: "first").key
            #expect(try await Purger(cluster.client).run(Purge(.key(try #require(ResultKey(key))))) == 1)
            #expect(try await version(cluster, of: key) == nil)
            // The cached source is still used.
            try await cluster.submit(Self.job("again", origin))
            #expect(try await cluster.events.terminal(of: "again").origin == "source-cache")
            #expect(try await version(cluster, of: key) == "v1")
            #expect(try await Purger(cluster.client).run(Purge(.source(source))) == 1)
            try await cluster.submit(Self.job("anew", origin))
            #expect(try await cluster.events.terminal(of: "anew").origin == "network")
            #expect(try await version(cluster, of: key) == "v2")
        }
    }

    @Test(arguments: RedisDeployment.Kind.allCases)
    func tagPurgeRemovesRenderedFoundAndInFlightResults(on kind: RedisDeployment.Kind) async throws {
        try await Self.withOrigin(redis: kind) { cluster, origin, gate in
            try await cluster.submit(Self.job("made", origin, #","tags":["t","u"]"#))
            try await until("the transfer has started") { origin.requests.count == 1 }
            // The result is not stored yet: the purge finds nothing, and the result must not appear afterwards.
            #expect(try await Purger(cluster.client).run(Purge(.tag("t"))) == 0)
            gate.open()
            let key = try await cluster.events.terminal(of: "made").key
            #expect(try await version(cluster, of: key) == nil)
            // Rendered again by a job without the tag, and found by a job with the tag.
            try await cluster.submit(Self.job("again", origin))
            _ = try await cluster.events.terminal(of: "again")
            try await cluster.submit(Self.job("found", origin, #","tags":["t"]"#))
            #expect(try await cluster.events.terminal(of: "found").origin == "memory")
            #expect(try await Purger(cluster.client).run(Purge(.tag("t"), of: "other")) == 0)
            #expect(try await Purger(cluster.client).run(Purge(.tag("t"))) == 1)
            #expect(try await version(cluster, of: key) == nil)
        }
    }

    @Test(arguments: RedisDeployment.Kind.allCases)
    func tenantPurgeRemovesStoredAndInFlightResults(on kind: RedisDeployment.Kind) async throws {
        try await Self.withOrigin(redis: kind) { cluster, origin, gate in
            let purge = Purge(.tenant("shop"))
            try await cluster.submit(Self.job("made", origin, #","tenant":"shop""#))
            try await until("the delayed transfer has started") { origin.requests.count == 1 }
            try await cluster.submit(Self.job("other", origin, #","tenant":"shop-2""#))
            try await until("the other transfer has started") { origin.requests.count == 2 }
            // The result is not stored yet: the purge finds nothing, and the result must not appear afterwards.
            #expect(try await Purger(cluster.client).run(purge) == 0)
            gate.open()
            let key = try await cluster.events.terminal(of: "made").key
            #expect(try await version(cluster, of: key) == nil)
            let other = try await cluster.events.terminal(of: "other").key
            try await cluster.submit(Self.job("again", origin, #","tenant":"shop""#))
            _ = try await cluster.events.terminal(of: "again")
            #expect(try await version(cluster, of: key) != nil)
            #expect(try await Purger(cluster.client).run(purge) == 1)
            #expect(try await version(cluster, of: key) == nil)
            #expect(try await version(cluster, of: other) != nil)
        }
    }

    /// Purges a source, and waits until the worker has handled the message about it.
    private static func purge(_ purge: Purge, _ cluster: WorkerFixture, _ metrics: Metrics) async throws {
        let service = PurgeService(cluster.client, nil, cluster.producer, topics: cluster.topics)
        _ = try await service.run(purge)
        // Messages are handled one after the other.
        try await cluster.publish(.purge(Purge(.tag("other"))))
        try await until("the worker has handled the first message") {
            metrics.value(of: #"halcyon_control_messages_total{kind="purge"}"#) == 2
        }
    }

    @Test(arguments: [0, 1 << 20])
    func sourcePurgedDuringItsFetchIsNotKeptOnDisk(redisBytes: Int) async throws {
        let (folder, metrics) = (TemporaryFolder("purge"), Metrics())
        try await Self.withOrigin(metrics: metrics) {
            $0.sourceTier.folder = folder.path
            $0.sourceTier.redisBytes = redisBytes
        } _: { cluster, origin, gate in
            try await cluster.submit(Self.job("a", origin))
            try await until("the transfer has started") { origin.requests.count == 1 }
            try await Self.purge(Purge(.source(try Source(origin.url("/a")))), cluster, metrics)
            gate.open()
            let ready = try await cluster.events.terminal(of: "a")
            #expect(ready.kind == "ready" && origin.requests.count == 2)
            #expect(try await version(cluster, of: ready.key) == "v2")
            try await cluster.submit(Self.job("b", origin, #","format":"png""#))
            let other = try await cluster.events.terminal(of: "b")
            #expect(other.origin == "source-cache")
            #expect(try await version(cluster, of: other.key) == "v2")
        }
        await folder.remove()
    }

    /// A worker may use its own copy until it has read about the purge.
    @Test func resultsOfAPurgedSourceOnDiskAreNotStored() async throws {
        let (folder, metrics) = (TemporaryFolder("purge"), Metrics())
        try await Self.withOrigin(metrics: metrics) {
            $0.sourceTier.folder = folder.path
            $0.sourceTier.redisBytes = 0
        } _: { cluster, origin, gate in
            gate.open()
            try await cluster.submit(Self.job("first", origin))
            #expect(try await cluster.events.terminal(of: "first").origin == "network")
            let purge = Purge(.source(try Source(origin.url("/a"))))
            #expect(try await Purger(cluster.client).run(purge) == 1)
            try await cluster.submit(Self.job("before", origin, #","format":"png""#))
            let before = try await cluster.events.terminal(of: "before")
            #expect(before.origin == "source-cache" && before.data["expiresAt"] == nil)
            #expect(try await version(cluster, of: before.key) == nil)
            try await Self.purge(purge, cluster, metrics)
            try await cluster.submit(Self.job("after", origin, #","format":"png""#))
            let after = try await cluster.events.terminal(of: "after")
            #expect(after.origin == "network")
            #expect(try await version(cluster, of: after.key) == "v2")
        }
        await folder.remove()
    }

    @Test func workersPurgeTheirDiskCaches() async throws {
        let origin = try SampleImages.origin()
        let folder = TemporaryFolder("purge")
        try await WorkerFixture.with { cluster in
            let purge = Purge(.source(try Source(origin.url("/a"))))
            func change(_ options: inout WorkerOptions) {
                options.sourceTier.folder = folder.path
                options.sourceTier.redisBytes = 0
            }
            @Sendable func made(_ id: String) async throws -> String? {
                try await cluster.submit(Self.job(id, origin, #","cache":{"memory":false}"#))
                return try await cluster.events.terminal(of: id).origin
            }
            try await cluster.withWorker(change) {
                #expect(try await made("1") == "network")
                #expect(try await made("2") == "source-cache")
                try await cluster.publish(.purge(purge))
                try await until("the worker has evicted the source") { try await made(UUID().uuidString) == "network" }
                #expect(try await made("3") == "source-cache")
            }
            // A worker that was stopped applies the purge when it starts, but only to sources cached before the purge.
            try await Task.sleep(for: .milliseconds(5))
            try await cluster.publish(.purge(purge))
            try await Task.sleep(for: .milliseconds(5))
            let count = origin.requests.count
            for (id, origin) in [("4", "network"), ("5", "source-cache")] {
                try await cluster.withWorker(change) {
                    let found = try await made(id)
                    #expect(found == origin)
                }
            }
            #expect(origin.requests.count == count + 1)
        }
        try await origin.stop()
        await folder.remove()
    }
}
