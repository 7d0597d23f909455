import HalcyonCluster
import HalcyonModel
import Redis
import TestSupport
import Testing

@Suite(.limitedParallelism) struct ResultCacheTests {
    static let facts = ResultMetadata(
        width: 4, height: 3, format: .png, bytes: 3, sha256: "ab",
        source: SourceMetadata(status: 200, etag: "\"e\"", bytes: 9, format: .jpeg, width: 40, height: 30))
    let key = "halcyon:{0}:1"

    /// Runs `body` with a tier on one server, or on a cluster.
    func with(
        _ kind: RedisDeployment.Kind, settings: RedisSettings = .patient,
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
    func givesBackWhatWasStoredUntilItExpires(on kind: RedisDeployment.Kind) async throws {
        try await with(kind) { tier, client, redis in
            #expect(try await tier.find(key) == nil)
            let expiresAt = try #require(
                try await tier.store([1, 2, 3], Self.facts, as: key, for: 60, by: .response))
            let found = try #require(try await tier.find(key))
            #expect(found.facts == Self.facts && found.expiresAt == expiresAt)
            let (body, facts) = try #require(try await tier.read(key))
            #expect(body == [1, 2, 3] && facts == Self.facts)
            #expect(try await client.send("HGET", .string(key), "body").bytes == [1, 2, 3])
            // By the server's own clock, so that it does not matter how long the test took to come here.
            let moment = try await client.send("PEXPIRETIME", .string(key)).integer
            #expect(moment == Int((expiresAt * 1000).rounded()))
            #expect((1...60_000).contains(try await client.send("PTTL", .string(key)).integer ?? 0))

            _ = try await tier.store([9], Self.facts, as: key, for: 0.05, by: .response)
            try await until("the result expires") { try await tier.find(key) == nil }
        }
    }

    @Test(arguments: RedisDeployment.Kind.allCases)
    func severalAreFoundAndReadAtOnceInTheirOrder(on kind: RedisDeployment.Kind) async throws {
        try await with(kind) { tier, client, redis in
            let keys = ["halcyon:{0}:1", "halcyon:{0}:2", "halcyon:{1}:3", "halcyon:{0}:4"]
            for (index, key) in keys.enumerated() where index != 1 {
                _ = try await tier.store([UInt8(index)], Self.facts, as: key, for: 60, by: .response)
            }
            _ = try await client.send("SET", .string(keys[3]), "a string")
            let found = try await tier.find(keys)
            #expect(found.map { $0?.facts } == [Self.facts, nil, Self.facts, nil])
            let read = try await tier.read(keys)
            #expect(read.map { $0?.body } == [[0], nil, [2], nil])
            #expect(read.map { $0?.result } == found)
            let nothing = try await tier.find([String]())
            #expect(nothing.isEmpty)
        }
    }

    @Test(arguments: RedisDeployment.Kind.allCases)
    func takesAnyLifetime(on kind: RedisDeployment.Kind) async throws {
        try await with(kind) { tier, client, redis in
            for lifetime in [1e-9, 0.0005, 1e12, .greatestFiniteMagnitude] {
                _ = try await tier.store([1], Self.facts, as: key, for: lifetime, by: .response)
            }
            #expect(try await client.send("PTTL", .string(key)).integer ?? 0 > 1_000_000_000)
        }
    }

    @Test(arguments: RedisDeployment.Kind.allCases)
    func whatAnotherVersionWroteIsNotThere(on kind: RedisDeployment.Kind) async throws {
        try await with(kind) { tier, client, redis in
            _ = try await client.send(
                "HSET", .string(key), "body", "x", "facts", "{\"shape\":\"new\"}", "expiresAt", "5")
            #expect(try await tier.find(key) == nil)
            _ = try await client.send("SET", "halcyon:{0}:2", "a string")
            await #expect(throws: RedisError.self) { try await tier.find("halcyon:{0}:2") }
        }
    }

    @Test(arguments: RedisDeployment.Kind.allCases)
    func aHandOffIsReadOnce(on kind: RedisDeployment.Kind) async throws {
        try await with(kind) { tier, client, redis in
            let key = ResultCache.handOffKey(
                for: ResultKey(
                    SourceRequest(try Source("http://h/")), variant: Variant(sizing: Sizing(goal: .original))
                ) {
                    _ in "5"
                })
            _ = try await tier.storeOnce([1], Self.facts, as: key, for: 60)
            // To look at it is not to read it.
            #expect(try await tier.find(key)?.facts == Self.facts)
            let readers = try await withThrowingTaskGroup(of: [UInt8]?.self) { group in
                for _ in 0..<20 { group.addTask { try await tier.read(key)?.body } }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(readers.compactMap { $0 } == [[1]])
            #expect(try await tier.find(key) == nil)
            #expect(try await redis.keyCount() == 0)
        }
    }

    @Test func aLostMasterTakesItsOwnResultsAlone() async throws {
        var settings = RedisSettings.patient
        settings.outageGrace = .milliseconds(500)
        settings.reconnectDelay = .milliseconds(10)...(.milliseconds(50))
        try await with(.cluster, settings: settings) { tier, client, redis in
            let keys = (0..<60).map { "halcyon:{\($0)}:1" }
            for key in keys { _ = try await tier.store([1], Self.facts, as: key, for: 600, by: .response) }
            // Each with the index of its source.
            let lost = Int(try await redis.servers[1].tell("DBSIZE").prefix { $0.isNumber }) ?? 0
            let kept = (try await redis.keyCount() - lost) / 2
            await redis.cluster?.kill(1)
            var (found, refused) = (0, 0)
            for key in keys {
                do throws(RedisError) {
                    #expect(try await tier.find(key)?.facts == Self.facts)
                    _ = try await tier.store([2], Self.facts, as: key, for: 600, by: .response)
                    found += 1
                } catch {
                    #expect(error.isRetriable, "\(error)")
                    refused += 1
                }
            }
            #expect(found == kept && refused == keys.count - kept && refused > 0 && found > 0)
            // Asked for together, those that are there are found.
            let together = try await tier.find(keys)
            #expect(together.compactMap { $0 }.count == kept)

            try await redis.cluster?.revive(1)
            try await until("all can be stored again") {
                for key in keys { _ = try await tier.store([3], Self.facts, as: key, for: 600, by: .response) }
                return true
            }
            let again = try await tier.read(keys)
            #expect(again.allSatisfy { $0?.body == [3] })
        }
    }

    @Test(arguments: RedisDeployment.Kind.allCases)
    func aFullRedisIsAnErrorAndNothingIsStored(on kind: RedisDeployment.Kind) async throws {
        try await with(kind) { tier, client, redis in
            try await redis.tellAll("CONFIG", "SET", "maxmemory", "1")
            await #expect(throws: RedisError.self) {
                try await tier.store([1], Self.facts, as: key, for: 60, by: .response)
            }
            #expect(try await redis.keyCount() == 0)
        }
    }
}
