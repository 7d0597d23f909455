import Formats
import HalcyonCluster
import HalcyonModel
import Telemetry
import TestSupport
import Testing

@testable import HalcyonGateway
@testable import HalcyonResults

/// Images that Redis has evicted.
@Suite(.limitedParallelism) struct ResultStoreTests {
    private static func withStore(
        _ change: (inout ResultStoreOptions) -> Void = { _ in },
        _ body: (ResultStore, StoredResult, _ now: Int64) async throws -> Void
    ) async throws {
        let folder = TemporaryFolder("results")
        var options = ResultStoreOptions(.folder("\(folder.path)/store"))
        // A busy machine must not turn a read into an outage.
        options.readTimeout = .seconds(600)
        change(&options)
        let store = try ResultStore.open(options, log: .silent, metrics: Metrics())
        store.start()
        let now = Timestamp.now.milliseconds
        let result = StoredResult(
            key: try #require(ResultKey(ImageFixture.key)), tenant: nil, body: ImageFixture.body,
            metadata: ImageFixture.metadata(ImageFixture.body), expiresAt: now + 600_000, storedAt: now, rule: "0",
            fence: now * 1000, since: now * 1000)
        try await body(store, result, now)
        await store.close(within: .seconds(60))
        await folder.remove()
    }

    @Test func evictedImagesAreRestored() async throws {
        try await Self.withStore { store, result, now in
            try await store.ensure(result, tags: [])
            try await Self.showRestoring(store, result, now)
        }
    }

    private static func showRestoring(_ store: ResultStore, _ result: StoredResult, _ now: Int64) async throws {
        let (key, body) = (ImageFixture.key, ImageFixture.body)
        try await ImageFixture.with(store: store) { fixture in
            for method in ["HEAD", "GET"] {
                _ = try await fixture.redis.send("FLUSHALL")
                let answer = try await fixture.ask(method, key)
                #expect(answer.status == 200 && answer.body == (method == "GET" ? body : []))
                #expect((500...600).contains(try ImageFixture.maxAge(answer)))
                #expect(try await fixture.redis.send("HEXISTS", .string(key), "body").integer == 1)
            }
            // A purged image does not come back.
            #expect(try await Purger(fixture.redis).run(Purge(.key(result.key))) == 1)
            #expect(try await fixture.get(key).status == 404)
            _ = try await store.purge(Purge(.key(result.key)), at: now * 1000)
            _ = try await fixture.redis.send("FLUSHALL")
            #expect(try await fixture.get(key).status == 404)
        }
    }

    /// A redirect is answered only for what the public URL has at that moment.
    @Test func redirectsToStoredImages() async throws {
        let body = ImageFixture.body
        try await Self.withStore({ $0.publicURL = "https://images.test/r" }) { store, result, now in
            try await ImageFixture.with(store: store, redirects: true) { fixture in
                _ = try await fixture.cache.store(
                    body, result.metadata, as: ImageFixture.key, for: 600, by: .response, fence: Int(now) * 1000)
                let early = try await fixture.get(ImageFixture.key)
                #expect(early.status == 200 && early.body == body)

                try await store.ensure(result, tags: [])
                for method in ["GET", "HEAD"] {
                    let answer = try await fixture.ask(method, ImageFixture.key)
                    #expect(answer.status == 302 && answer.body.isEmpty)
                    #expect(answer.headers["location"] == "https://images.test/r/\(ObjectName.result(result.key))")
                    #expect(answer.headers["cache-control"] == "no-cache")
                }
                _ = try await store.purge(Purge(.key(result.key)), at: now * 1000)
                #expect(try await fixture.get(ImageFixture.key).status == 200)
                // A one-time image is not in the store.
                #expect(try await fixture.get("halcyon:{0}:handoff:0").status == 404)
            }
        }
    }
}
