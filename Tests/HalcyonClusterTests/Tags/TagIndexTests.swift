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
            // An entry keeps its latest expiry, and the set expires with the last entry.
            #expect(try await tags.index("k1", until: Timestamp.now.seconds + 1, under: ["a"], of: nil))
            #expect(try await keys("/a", redis) == ["k2", "k1"])
            let expiry = try await redis.send("PEXPIRETIME", "halcyon:tag:{/a}").integer
            #expect(try await Double(expiry ?? 0) == end(of: "k1", "/a", redis))
        }
    }

    private func end(of key: String, _ tag: String, _ redis: RedisClient) async throws -> Double {
        try await redis.send("ZSCORE", .string("halcyon:tag:{\(tag)}"), .string(key)).number ?? 0
    }

    @Test(arguments: RedisDeployment.Kind.allCases, [nil, "shop/7"] as [String?])
    func extensionReachesTheTagsOfAllJobs(on kind: RedisDeployment.Kind, tenant: String?) async throws {
        try await ResultCacheFixture.with(kind) { cache, redis, _ in
            let (tags, key, names) = (TagIndex(redis), "halcyon:{a}:1", ["maker", "ü b/%"])
            let life = try #require(
                try await cache.store(
                    [1], ResultCacheFixture.metadata, as: key, for: 60, by: .response, of: tenant, tags: [names[0]]))
            for name in names { try await tags.index(key, until: life.expiresAt, under: [name], of: tenant) }
            let later = life.expiresAt + 6000
            let extended = try await tags.extend(key, until: later, of: tenant)
            #expect(Set(extended) == Set(names))
            for name in names {
                let end = try await end(of: key, "\(tenant ?? "")/\(name)", redis)
                #expect(end >= later * 1000)
            }
        }
    }

    /// A job may extend the life of a result before the job that made it adds it to its tags.
    @Test func entryLastsAsLongAsItsResult() async throws {
        try await ResultCacheFixture.with { cache, redis, _ in
            let (tags, key) = (TagIndex(redis), "halcyon:{a}:1")
            let life = try #require(
                try await cache.store([1], ResultCacheFixture.metadata, as: key, for: 6000, by: .response))
            try await tags.index(key, until: life.expiresAt - 5000, under: ["a"], of: nil)
            let end = try await end(of: key, "/a", redis)
            #expect(end >= Double(life.expiresAtMilliseconds))
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
            #expect((300_000...600_000).contains(left))
        }
    }
}
