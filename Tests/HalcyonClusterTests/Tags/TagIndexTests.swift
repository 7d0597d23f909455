import Formats
import Redis
import TestSupport
import Testing

@testable import HalcyonCluster

@Suite(.limitedParallelism) struct TagIndexTests {
    private func keys(_ tag: String, _ redis: RedisClient) async throws -> [String] {
        try await redis.send("ZRANGE", .string("halcyon:tag:{\(tag)}"), 0, -1).array?.compactMap(\.string) ?? []
    }

    @Test(arguments: RedisDeployment.Kind.allCases)
    func listsResultsByTag(on kind: RedisDeployment.Kind) async throws {
        try await ResultCacheFixture.with(kind) { _, redis, _ in
            let tags = TagIndex(redis)
            let marks = try await tags.marks(["a", "b}"], of: nil)
            #expect(
                try await tags.index(
                    "k1", until: Timestamp.now.seconds + 60, under: ["a", "b}"], of: nil, since: marks))
            #expect(try await tags.index("k2", until: Timestamp.now.seconds + 30, under: ["a"], of: nil))
            #expect(try await tags.index("k3", until: Timestamp.now.seconds + 30, under: ["a"], of: "shop"))
            #expect(try await keys("/a", redis) == ["k2", "k1"])
            #expect(try await keys("/b}", redis) == ["k1"])
            #expect(try await keys("shop/a", redis) == ["k3"])
            // An entry keeps its latest expiry, and the set expires a minute after the last entry.
            #expect(try await tags.index("k1", until: Timestamp.now.seconds + 1, under: ["a"], of: nil))
            #expect(try await keys("/a", redis) == ["k2", "k1"])
            let left = try await redis.send("PTTL", "halcyon:tag:{/a}").integer ?? 0
            #expect((100_000...120_000).contains(left))
        }
    }

    @Test func dropsExpiredEntries() async throws {
        try await ResultCacheFixture.with { _, redis, _ in
            _ = try await redis.send("ZADD", "halcyon:tag:{/a}", 1000, "old")
            try await TagIndex(redis).index("new", until: Timestamp.now.seconds + 1, under: ["a"], of: nil)
            #expect(try await keys("/a", redis) == ["new"])
        }
    }

    @Test(arguments: RedisDeployment.Kind.allCases)
    func rejectsResultsStartedBeforeAPurge(on kind: RedisDeployment.Kind) async throws {
        try await ResultCacheFixture.with(kind) { _, redis, _ in
            let tags = TagIndex(redis)
            let early = try await tags.marks(["a", "b"], of: nil)
            #expect(try await tags.index("k1", until: Timestamp.now.seconds + 60, under: ["a"], of: nil, since: early))
            #expect(try await tags.purge("a", of: nil) == ["k1"])
            #expect(
                try await !tags.index(
                    "k2", until: Timestamp.now.seconds + 60, under: ["a", "b"], of: nil, since: early))
            #expect(try await tags.index("k2", until: Timestamp.now.seconds + 60, under: ["b"], of: nil, since: early))
            // Purges of other tenants have no effect. Work that starts after a purge is accepted until the next one.
            #expect(
                try await tags.index(
                    "k3", until: Timestamp.now.seconds + 60, under: ["a"], of: "shop",
                    since: tags.marks(["a"], of: "shop")))
            let late = try await tags.marks(["a"], of: nil)
            #expect(late != early)
            #expect(try await tags.index("k3", until: Timestamp.now.seconds + 60, under: ["a"], of: nil, since: late))
            _ = try await tags.purge("a", of: nil)
            #expect(try await !tags.index("k3", until: Timestamp.now.seconds + 60, under: ["a"], of: nil, since: late))
            let left = try await redis.send("PTTL", "halcyon:tag:{/a}:purged").integer ?? 0
            #expect((590_000...600_000).contains(left))
        }
    }
}
