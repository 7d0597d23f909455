import Formats
import HalcyonCluster
import HalcyonModel
import HalcyonResults
import Telemetry
import TestSupport
import Testing

@testable import HalcyonGateway

/// Images that Redis has evicted.
@Suite(.limitedParallelism) struct ResultStoreTests {
    @Test func evictedImagesAreRestored() async throws {
        let folder = TemporaryFolder("results")
        let store = try ResultStore.open(
            ResultStoreOptions(.folder("\(folder.path)/store")), log: .silent, metrics: Metrics())
        store.start()
        let (key, body) = (ImageFixture.key, ImageFixture.body)
        let now = Timestamp.now.milliseconds
        let result = StoredResult(
            key: try #require(ResultKey(key)), tenant: nil, body: body, metadata: ImageFixture.metadata(body),
            expiresAt: now + 600_000, storedAt: now, rule: "0", fence: now * 1000, since: now * 1000)
        try await store.ensure(result, tags: [])
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
        await store.close(within: .seconds(5))
        await folder.remove()
    }
}
