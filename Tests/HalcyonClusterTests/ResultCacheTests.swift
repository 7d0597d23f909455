import HalcyonCluster
import HalcyonModel
import Redis
import TestSupport
import Testing

@Suite(.limitedParallelism) struct ResultCacheTests {
    static let metadata = ResultMetadata(
        width: 4, height: 3, format: .png, bytes: 3, sha256: "ab",
        source: SourceMetadata(status: 200, etag: "\"e\"", bytes: 9, format: .jpeg, width: 40, height: 30))
    let key = "halcyon:{0}:1"

    /// Runs `body` with a result cache on one server or a cluster.
    func withCache(
        _ kind: RedisDeployment.Kind, settings: RedisSettings = .patient(),
        _ body: (ResultCache, RedisClient, RedisDeployment) async throws -> Void
    ) async throws {
        let redis = try await RedisDeployment.start(kind)
        let client = RedisClient(try RedisEndpoint(redis.url), settings: settings)
        let result: Result<Void, any Error>
        do { result = .success(try await body(ResultCache(client), client, redis)) } catch { result = .failure(error) }
        await client.close()
        await redis.stop()
        try result.get()
    }

    @Test(arguments: RedisDeployment.Kind.allCases)
    func returnsStoredResultsUntilTheyExpire(on kind: RedisDeployment.Kind) async throws {
        try await withCache(kind) { cache, client, redis in
            #expect(try await cache.find(key) == nil)
            let expiresAt = try #require(
                try await cache.store([1, 2, 3], Self.metadata, as: key, for: 60, by: .response)?.expiresAt)
            let found = try #require(try await cache.find(key))
            #expect(found.facts == Self.metadata && found.expiresAt == expiresAt)
            let (body, metadata) = try #require(try await cache.read(key))
            #expect(body == [1, 2, 3] && metadata == Self.metadata)
            #expect(try await client.send("HGET", .string(key), "body").bytes == [1, 2, 3])
            // Compared by the clock of the server, so the duration of the test does not matter.
            let moment = try await client.send("PEXPIRETIME", .string(key)).integer
            #expect(moment == Int((expiresAt * 1000).rounded()))
            #expect((1...60_000).contains(try await client.send("PTTL", .string(key)).integer ?? 0))

            _ = try await cache.store([9], Self.metadata, as: key, for: 0.05, by: .response)
            try await until("the result expires") { try await cache.find(key) == nil }
        }
    }

    @Test(arguments: RedisDeployment.Kind.allCases)
    func findsAndReadsSeveralInOrder(on kind: RedisDeployment.Kind) async throws {
        try await withCache(kind) { cache, client, redis in
            let keys = ["halcyon:{0}:1", "halcyon:{0}:2", "halcyon:{1}:3", "halcyon:{0}:4"]
            for (index, key) in keys.enumerated() where index != 1 {
                _ = try await cache.store([UInt8(index)], Self.metadata, as: key, for: 60, by: .response)
            }
            _ = try await client.send("SET", .string(keys[3]), "a string")
            let found = try await cache.find(keys)
            #expect(found.map { $0?.facts } == [Self.metadata, nil, Self.metadata, nil])
            let read = try await cache.read(keys)
            #expect(read.map { $0?.body } == [[0], nil, [2], nil])
            #expect(read.map { $0?.result } == found)
            let nothing = try await cache.find([String]())
            #expect(nothing.isEmpty)
        }
    }

    @Test(arguments: RedisDeployment.Kind.allCases)
    func acceptsAnyTTL(on kind: RedisDeployment.Kind) async throws {
        try await withCache(kind) { cache, client, redis in
            for lifetime in [1e-9, 0.0005, 1e12, .greatestFiniteMagnitude] {
                _ = try await cache.store([1], Self.metadata, as: key, for: lifetime, by: .response)
            }
            #expect(try await client.send("PTTL", .string(key)).integer ?? 0 > 1_000_000_000)
        }
    }

    @Test(arguments: RedisDeployment.Kind.allCases)
    func ignoresResultsOfOtherVersions(on kind: RedisDeployment.Kind) async throws {
        try await withCache(kind) { cache, client, redis in
            _ = try await client.send(
                "HSET", .string(key), "body", "x", "facts", "{\"shape\":\"new\"}", "expiresAt", "5")
            #expect(try await cache.find(key) == nil)
            _ = try await client.send("SET", "halcyon:{0}:2", "a string")
            await #expect(throws: RedisError.self) { try await cache.find("halcyon:{0}:2") }
        }
    }

    @Test(arguments: RedisDeployment.Kind.allCases)
    func handOffIsReadOnce(on kind: RedisDeployment.Kind) async throws {
        try await withCache(kind) { cache, client, redis in
            let key = ResultCache.handOffKey(
                for: ResultKey(
                    SourceRequest(try Source("http://h/")), variant: Variant(sizing: Sizing(goal: .original))
                ) {
                    _ in "5"
                })
            _ = try await cache.storeOnce([1], Self.metadata, as: key, for: 60)
            // A lookup does not count as the read.
            #expect(try await cache.find(key)?.facts == Self.metadata)
            let readers = try await withThrowingTaskGroup(of: [UInt8]?.self) { group in
                for _ in 0..<20 { group.addTask { try await cache.read(key)?.body } }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(readers.compactMap { $0 } == [[1]])
            #expect(try await cache.find(key) == nil)
            #expect(try await redis.keyCount() == 0)
        }
    }

    @Test func losingAMasterLosesOnlyItsResults() async throws {
        var settings = RedisSettings.patient(outageGrace: .milliseconds(500))
        settings.reconnectDelay = .milliseconds(10)...(.milliseconds(50))
        try await withCache(.cluster, settings: settings) { cache, client, redis in
            let keys = (0..<60).map { "halcyon:{\($0)}:1" }
            for key in keys { _ = try await cache.store([1], Self.metadata, as: key, for: 600, by: .response) }
            // Each result has an index of its source.
            let lost = Int(try await redis.servers[1].run("DBSIZE").prefix { $0.isNumber }) ?? 0
            let kept = (try await redis.keyCount() - lost) / 2
            await redis.cluster?.kill(1)
            var (found, refused) = (0, 0)
            for key in keys {
                do throws(RedisError) {
                    #expect(try await cache.find(key)?.facts == Self.metadata)
                    _ = try await cache.store([2], Self.metadata, as: key, for: 600, by: .response)
                    found += 1
                } catch {
                    #expect(error.isRetriable, "\(error)")
                    refused += 1
                }
            }
            #expect(found == kept && refused == keys.count - kept && refused > 0 && found > 0)
            // A lookup of all keys finds the results of the other masters.
            let foundTogether = try await cache.find(keys)
            #expect(foundTogether.compactMap { $0 }.count == kept)

            try await redis.cluster?.revive(1)
            try await until("all results can be stored again") {
                for key in keys { _ = try await cache.store([3], Self.metadata, as: key, for: 600, by: .response) }
                return true
            }
            let again = try await cache.read(keys)
            #expect(again.allSatisfy { $0?.body == [3] })
        }
    }

    @Test(arguments: RedisDeployment.Kind.allCases)
    func failsWithoutStoringWhenRedisIsFull(on kind: RedisDeployment.Kind) async throws {
        try await withCache(kind) { cache, client, redis in
            try await redis.runOnAll("CONFIG", "SET", "maxmemory", "1")
            await #expect(throws: RedisError.self) {
                try await cache.store([1], Self.metadata, as: key, for: 60, by: .response)
            }
            #expect(try await redis.keyCount() == 0)
        }
    }
}
