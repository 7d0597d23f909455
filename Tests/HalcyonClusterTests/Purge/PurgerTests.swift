import Formats
import HalcyonCoding
import HalcyonCoordination
import HalcyonModel
import Redis
import TestSupport
import Testing

@testable import HalcyonCluster

@Suite(.limitedParallelism) struct PurgerTests {
    static let source = try! Source("https://example.org/cat.jpg")

    static func key(_ width: Double, _ tenant: String? = nil, of source: Source = source) -> ResultKey {
        ResultKey(
            SourceRequest(source, tenant: tenant),
            variant: Variant(sizing: Sizing(goal: .sizer(.aspectScaleDownByWidth(width)))))
    }

    static func store(_ keys: [ResultKey], in cache: ResultCache, of tenant: String? = nil) async throws {
        for key in keys {
            _ = try await cache.store(
                [1], ResultCacheFixture.metadata, as: key.description, for: 600, by: .response, of: tenant)
        }
    }

    static func fence(_ field: String, of tenant: String? = nil, _ redis: RedisClient) async throws -> Double? {
        try await redis.send(
            "HGET", .string("halcyon:{\(SourceRequest(source, tenant: tenant).sourceHash)}:fences"), .string(field)
        ).number
    }

    @Test(arguments: RedisDeployment.Kind.allCases)
    func purgesSourceWithAllItsResults(on kind: RedisDeployment.Kind) async throws {
        try await ResultCacheFixture.with(kind) { cache, redis, _ in
            let (keys, other) = ((1...450).map { Self.key(Double($0)) }, try Source("https://example.org/dog.jpg"))
            let stays = [Self.key(1, "shop"), Self.key(1, of: other)]
            try await Self.store(keys + stays, in: cache)
            _ = try await redis.send(
                "HSET", .string("halcyon:{\(SourceRequest(Self.source).sourceHash)}:source"), "body", "x")
            let before = try await redis.microseconds(of: keys[0])
            #expect(try await Purger(redis).run(Purge(.source(Self.source))) == 450)
            #expect(try await cache.find(keys.map(\.description)).allSatisfy { $0 == nil })
            #expect(try await cache.find(stays.map(\.description)).allSatisfy { $0 != nil })
            let left = try await redis.send(
                "KEYS", .string("halcyon:{\(SourceRequest(Self.source).sourceHash)}:*"), at: keys[0])
            #expect(left.array?.compactMap(\.string) == ["halcyon:{\(SourceRequest(Self.source).sourceHash)}:fences"])
            let floor = try #require(try await Self.fence("floor", redis))
            let after = try await redis.microseconds(of: keys[0])
            #expect((before...after).contains(floor))
            // With nothing left to remove, the floor still rises.
            #expect(try await Purger(redis).run(Purge(.source(Self.source))) == 0)
            #expect(try await Self.fence("floor", redis) ?? 0 > floor)
        }
    }

    @Test(arguments: RedisDeployment.Kind.allCases)
    func purgesSingleKeyOnly(on kind: RedisDeployment.Kind) async throws {
        try await ResultCacheFixture.with(kind) { cache, redis, _ in
            let keys = [Self.key(1), Self.key(2)]
            try await Self.store(keys, in: cache)
            let source = "halcyon:{\(SourceRequest(Self.source).sourceHash)}:source"
            _ = try await redis.send("HSET", .string(source), "body", "x")
            #expect(try await Purger(redis).run(Purge(.key(keys[0]))) == 1)
            #expect(try await cache.find(keys.map(\.description)).map { $0 == nil } == [true, false])
            #expect(try await redis.send("EXISTS", .string(source)).integer == 1)
            #expect(try await Self.fence("floor:\(keys[0].variantHash)", redis) != nil)
            #expect(try await Self.fence("floor:\(keys[1].variantHash)", redis) == nil)
            #expect(try await Self.fence("floor", redis) == nil)
            #expect(try await Purger(redis).run(Purge(.key(keys[0]))) == 0)
            // The index no longer contains the removed result.
            #expect(try await Purger(redis).run(Purge(.source(Self.source))) == 1)
        }
    }

    @Test(arguments: RedisDeployment.Kind.allCases)
    func purgesTagAcrossSources(on kind: RedisDeployment.Kind) async throws {
        try await ResultCacheFixture.with(kind) { cache, redis, _ in
            let tags = TagIndex(redis)
            let sources = try (0..<20).map { try Source("https://example.org/\($0).jpg") }
            let keys = (0..<250).map { Self.key(Double($0 + 1), "shop", of: sources[$0 % 20]) }
            try await Self.store(keys, in: cache, of: "shop")
            for (index, key) in keys.enumerated() {
                try await tags.index(
                    key.description, until: Timestamp.now.seconds + 600,
                    under: index.isMultiple(of: 5) ? ["all", "some"] : ["all"], of: "shop")
            }
            try await tags.index(
                "halcyon:{0}:no such thing", until: Timestamp.now.seconds + 600, under: ["some"], of: "shop")
            #expect(try await Purger(redis).run(Purge(.tag("some"))) == 0)
            #expect(try await Purger(redis).run(Purge(.tag("some"), of: "shop")) == 50)
            let left = try await cache.find(keys.map(\.description))
            #expect(left.enumerated().allSatisfy { ($1 == nil) == $0.isMultiple(of: 5) })
            #expect(try await redis.send("EXISTS", "halcyon:tag:{shop/some}").integer == 0)
            // Results that are already removed do not count.
            #expect(try await Purger(redis).run(Purge(.tag("all"), of: "shop")) == 200)
        }
    }

    @Test(arguments: RedisDeployment.Kind.allCases)
    func purgesAllResultsOfATenant(on kind: RedisDeployment.Kind) async throws {
        try await ResultCacheFixture.with(kind) { cache, redis, _ in
            let sources = try (0..<20).map { try Source("https://example.org/\($0).jpg") }
            func keys(_ tenant: String?) -> [ResultKey] {
                (0..<1200).map { Self.key(Double($0 + 1), tenant, of: sources[$0 % 20]) }
            }
            for tenant in [nil, "shop", "shop-2"] { try await Self.store(keys(tenant), in: cache, of: tenant) }
            // A key of another kind in the scanned range.
            _ = try await redis.send("SET", .string("\(Self.key(9999).description)"), "x")
            #expect(try await Purger(redis).run(Purge(.tenant("shop"))) == 1200)
            #expect(try await cache.find(keys("shop").map(\.description)).allSatisfy { $0 == nil })
            for tenant in [nil, "shop-2"] {
                #expect(try await cache.find(keys(tenant).map(\.description)).allSatisfy { $0 != nil })
            }
            #expect(try await Purger(redis).run(Purge(.tenant("shop"))) == 0)
        }
    }

    @Test func floorNeverDecreasesNorExpiresEarlier() async throws {
        try await ResultCacheFixture.with { _, redis, _ in
            let fences = RedisArgument.string("halcyon:{\(SourceRequest(Self.source).sourceHash)}:fences")
            // A fencing token ahead of the clock, as after the clock was set back.
            let ahead = try await redis.microseconds(of: Self.key(1)) + 3.6e9
            _ = try await redis.send("HSET", fences, "last", .integer(Int(ahead)))
            _ = try await redis.send("PEXPIRE", fences, 3_600_000)
            _ = try await Purger(redis).run(Purge(.source(Self.source)))
            #expect(try await Self.fence("floor", redis) == ahead + 1)
            #expect(try await Self.fence("last", redis) == ahead + 1)
            #expect(try await redis.send("PTTL", fences).integer ?? 0 > 3_000_000)
            _ = try await redis.send("PEXPIRE", fences, 300_000)
            _ = try await redis.send("HDEL", fences, "last")
            _ = try await Purger(redis).run(Purge(.source(Self.source)))
            #expect(try await Self.fence("floor", redis) == ahead + 1)
            #expect(try await redis.send("PTTL", fences).integer ?? 0 > 400_000)
            _ = try await redis.send("PERSIST", fences)
            _ = try await Purger(redis).run(Purge(.source(Self.source)))
            #expect(try await redis.send("PTTL", fences).integer == -1)
        }
    }

    @Test func purgeReducesQuotaUsage() async throws {
        try await ResultCacheFixture.with(budget: Budget(count: 100)) { cache, redis, _ in
            try await Self.store([Self.key(1, "shop"), Self.key(2, "shop")], in: cache, of: "shop")
            _ = try await Purger(redis).run(Purge(.key(Self.key(1, "shop")), of: "shop"))
            let (_, left) = try await QuotaStore(redis).trim(ResultCache.quota(of: "shop"), to: Budget(count: 100))
            #expect(left.count == 1)
            _ = try await Purger(redis).run(Purge(.source(Self.source), of: "shop"))
            #expect(
                try await QuotaStore(redis).trim(ResultCache.quota(of: "shop"), to: Budget(count: 100)).left.count == 0)
        }
    }

    @Test func purgesWhenRedisIsFull() async throws {
        try await ResultCacheFixture.with { cache, redis, deployment in
            try await Self.store([Self.key(1)], in: cache)
            try await TagIndex(redis).index(
                Self.key(1).description, until: Timestamp.now.seconds + 60, under: ["a"], of: nil)
            try await deployment.runOnAll("CONFIG", "SET", "maxmemory", "1")
            #expect(try await Purger(redis).run(Purge(.tag("a"))) == 1)
            #expect(try await Purger(redis).run(Purge(.source(Self.source))) == 0)
            #expect(try await Self.fence("floor", redis) != nil)
        }
    }
}

extension RedisClient {
    /// The time of the server that owns a key, in microseconds like fencing tokens.
    fileprivate func microseconds(of key: ResultKey) async throws -> Double {
        let script = RedisScript("local t = redis.call('TIME') return string.format('%.0f', t[1] * 1000000 + t[2])")
        return try await run(script, keys: [.string(key.description)]).number ?? 0
    }

    /// Sends a command without a key to every master and concatenates the array replies.
    fileprivate func send(_ command: RedisArgument..., at key: ResultKey) async throws -> RedisValue {
        var all: [RedisValue] = []
        for master in try await masters() { all += try await send(command, to: master).array ?? [] }
        return .array(all)
    }
}
