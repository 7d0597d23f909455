import HalcyonCluster
import Redis
import TestSupport
import Testing

/// The index of the results of a source, which purges use.
@Suite(.limitedParallelism) struct SourceIndexTests {
    let index = RedisArgument.string("halcyon:{0}:results")

    private func names(_ redis: RedisClient) async throws -> [String] {
        try await redis.send("ZRANGE", index, 0, -1).array?.compactMap(\.string) ?? []
    }

    @Test(arguments: RedisDeployment.Kind.allCases)
    func ordersResultsByExpiry(on kind: RedisDeployment.Kind) async throws {
        try await ResultCacheFixture.with(kind) { cache, redis, _ in
            for (name, lifetime) in [("b", 60), ("a", 600), ("c", 30)] as [(String, Double)] {
                _ = try await cache.store(
                    [1], ResultCacheFixture.metadata, as: "halcyon:{0}:\(name)", for: lifetime, by: .response)
            }
            _ = try await cache.storeOnce([1], ResultCacheFixture.metadata, as: "halcyon:{0}:handoff:1", for: 90)
            _ = try await cache.store([1], ResultCacheFixture.metadata, as: "halcyon:{1}:x", for: 60, by: .response)
            #expect(try await names(redis) == ["c", "b", "a"])
            let last = try await redis.send("PEXPIRETIME", "halcyon:{0}:a").integer
            #expect(try await redis.send("PEXPIRETIME", index).integer == last)
            #expect(try await redis.send("ZSCORE", index, "a").number == last.map(Double.init))
        }
    }

    @Test func expiresWithItsLastResultAndDropsExpiredOnes() async throws {
        try await ResultCacheFixture.with { cache, redis, _ in
            _ = try await cache.store([1], ResultCacheFixture.metadata, as: "halcyon:{0}:a", for: 0.05, by: .response)
            _ = try await cache.store([1], ResultCacheFixture.metadata, as: "halcyon:{0}:b", for: 60, by: .response)
            try await until("the first result expires") { try await cache.find("halcyon:{0}:a") == nil }
            _ = try await cache.store([1], ResultCacheFixture.metadata, as: "halcyon:{0}:c", for: 30, by: .response)
            #expect(try await names(redis) == ["c", "b"])
            for name in ["b", "c"] {
                _ = try await cache.store(
                    [1], ResultCacheFixture.metadata, as: "halcyon:{0}:\(name)", for: 0.05, by: .response)
            }
            try await until("all keys have expired") { try await redis.send("DBSIZE").integer == 0 }
        }
    }

    @Test func followsExtendedExpiry() async throws {
        try await ResultCacheFixture.with { cache, redis, _ in
            let key = "halcyon:{0}:a"
            _ = try await cache.store([1], ResultCacheFixture.metadata, as: key, for: 60, by: .response)
            let found = try #require(try await cache.find(key, for: .own(seconds: 600)))
            _ = try await cache.extend(found, as: key, by: .own(seconds: 600))
            let expiry = try await redis.send("PEXPIRETIME", .string(key)).integer
            #expect(try await redis.send("ZSCORE", index, "a").number == expiry.map(Double.init))
            #expect(try await redis.send("PEXPIRETIME", index).integer == expiry)
        }
    }
}
