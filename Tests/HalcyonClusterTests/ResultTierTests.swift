import HalcyonCluster
import HalcyonModel
import Redis
import TestSupport
import Testing

@Suite(.takesTurns) struct ResultTierTests {
    static let facts = ResultFacts(
        width: 4, height: 3, format: .png, bytes: 3, sha256: "ab",
        source: SourceFacts(status: 200, etag: "\"e\"", bytes: 9, format: .jpeg, width: 40, height: 30))
    let key = "halcyon:{0}:1"

    func with(_ body: (ResultTier, RedisClient) async throws -> Void) async throws {
        let server = try await RedisServer.start()
        let client = RedisClient(RedisEndpoint(loopbackPort: server.port), settings: patient)
        do {
            try await body(ResultTier(client), client)
        } catch {
            await client.close()
            await server.stop()
            throw error
        }
        await client.close()
        await server.stop()
    }

    @Test func givesBackWhatWasStoredUntilItExpires() async throws {
        try await with { tier, client in
            #expect(try await tier.find(key) == nil)
            let expiresAt = try await tier.store([1, 2, 3], Self.facts, as: key, for: 60, by: .response)
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

    @Test func severalAreFoundAndReadAtOnceInTheirOrder() async throws {
        try await with { tier, client in
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

    @Test func takesAnyLifetime() async throws {
        try await with { tier, client in
            for lifetime in [1e-9, 0.0005, 1e12, .greatestFiniteMagnitude] {
                _ = try await tier.store([1], Self.facts, as: key, for: lifetime, by: .response)
            }
            #expect(try await client.send("PTTL", .string(key)).integer ?? 0 > 1_000_000_000)
        }
    }

    @Test func whatAnotherVersionWroteIsNotThere() async throws {
        try await with { tier, client in
            _ = try await client.send(
                "HSET", .string(key), "body", "x", "facts", "{\"shape\":\"new\"}", "expiresAt", "5")
            #expect(try await tier.find(key) == nil)
            _ = try await client.send("SET", "halcyon:{0}:2", "a string")
            await #expect(throws: RedisError.self) { try await tier.find("halcyon:{0}:2") }
        }
    }

    @Test func aHandOffIsReadOnce() async throws {
        try await with { tier, client in
            let key = ResultTier.handOffKey(
                for: ResultKey(source: try Source("http://h/"), variant: Variant(sizing: Sizing(goal: .original))) {
                    _ in "5"
                })
            _ = try await tier.handOff([1], Self.facts, as: key, for: 60)
            // To look at it is not to read it.
            #expect(try await tier.find(key)?.facts == Self.facts)
            let readers = try await withThrowingTaskGroup(of: [UInt8]?.self) { group in
                for _ in 0..<20 { group.addTask { try await tier.read(key)?.body } }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(readers.compactMap { $0 } == [[1]])
            #expect(try await tier.find(key) == nil)
            #expect(try await client.send("DBSIZE").integer == 0)
        }
    }

    @Test func aFullRedisIsAnErrorAndNothingIsStored() async throws {
        try await with { tier, client in
            _ = try await client.send("CONFIG", "SET", "maxmemory", "1")
            await #expect(throws: RedisError.self) {
                try await tier.store([1], Self.facts, as: key, for: 60, by: .response)
            }
            #expect(try await client.send("DBSIZE").integer == 0)
        }
    }
}

/// A busy machine has all the time it needs.
private var patient: RedisSettings {
    var settings = RedisSettings()
    settings.commandTimeout = .seconds(120)
    settings.connectTimeout = .seconds(120)
    settings.outageGrace = .seconds(120)
    return settings
}
