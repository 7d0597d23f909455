import HalcyonCoordination
import Redis
import Telemetry
import TestSupport
import Testing

/// Books on a real Redis, of things that are none of Halcyon's: plain hashes with a field `storedAt`. What they come to over
/// thousands of operations is shown with results and with sources, by the tests of those.
@Suite(.limitedParallelism) struct QuotaStoreTests {
    private static func with(_ body: (QuotaTracker, RedisClient) async throws -> Void) async throws {
        let server = try await RedisServer.start()
        let client = RedisClient(RedisEndpoint(loopbackPort: server.port))
        let accounts = QuotaTracker(client, Budget(bytes: 100, count: 3))
        let result: Result<Void, any Error>
        do { result = .success(try await body(accounts, client)) } catch { result = .failure(error) }
        await accounts.uses.close()
        await client.close()
        await server.stop()
        try result.get()
    }

    private static let storing = RedisScript(
        StoreTimestamp.lua + """
            local stored = stamp(redis.call('HGET', KEYS[1], 'storedAt'))
            redis.call('HSET', KEYS[1], 'storedAt', stored)
            return stored
            """)

    private static func store(
        _ key: String, bytes: Int, in quota: String, _ accounts: QuotaTracker, _ client: RedisClient
    ) async throws {
        let stored = try #require(try await client.run(storing, keys: [.string(key)]).string)
        await accounts.insert(
            QuotaTracker.Entry(key: key, storedAt: stored, expiresAt: 4e12, cost: Cost(bytes: bytes)), in: quota)
    }

    private static func there(_ client: RedisClient) async throws -> [String] {
        let keys = try await client.send("KEYS", "thing*").array ?? []
        return keys.compactMap(\.string).sorted()
    }

    @Test func eachBookHasItsOwnThingsAndItsOwnBudget() async throws {
        try await Self.with { accounts, client in
            for number in 0..<5 {
                try await Self.store("thing-a\(number)", bytes: 10, in: "a", accounts, client)
                try await Self.store("thing-b\(number)", bytes: 45, in: "b", accounts, client)
            }
            #expect(
                try await Self.there(client) == ["thing-a2", "thing-a3", "thing-a4", "thing-b3", "thing-b4"])
            let (removed, left) = try await QuotaStore(client).trim("a", to: Budget(count: 1))
            #expect(removed == QuotaUsage(count: 2, bytes: 20) && left == QuotaUsage(count: 1, bytes: 10))
            #expect(try await QuotaStore(client).trim("b", to: Budget()).left == QuotaUsage(count: 2, bytes: 90))
            #expect(try await QuotaStore(client).trim("c", to: Budget(count: 0)).left == QuotaUsage())
            #expect(try await client.send("EXISTS", "halcyon:{a}:sum", "halcyon:{b}:sum").integer == 2)
        }
    }

    @Test func whatWasUsedStays() async throws {
        try await Self.with { accounts, client in
            for number in 0..<3 { try await Self.store("thing\(number)", bytes: 1, in: "a", accounts, client) }
            accounts.uses.recordAccess(["thing0"], in: "a")
            // Told when it is closed, if not before.
            await accounts.uses.close()
            try await Self.store("thing3", bytes: 1, in: "a", accounts, client)
            #expect(try await Self.there(client) == ["thing0", "thing2", "thing3"])
        }
    }

    @Test func aMomentIsAlwaysLaterThanTheOneBefore() async throws {
        try await Self.with { _, client in
            // As if the clock had been put back.
            _ = try await client.send("HSET", "thing", "storedAt", "4000000000000.123")
            var last = 4_000_000_000_000.123
            for _ in 0..<5 {
                let stored = try await client.run(Self.storing, keys: ["thing"]).string.flatMap(Double.init)
                #expect(try #require(stored) > last)
                last = stored ?? 0
            }
        }
    }

    @Test func booksThatCannotBeKeptStopNothingAndAreCounted() async throws {
        let metrics = Metrics()
        let server = try await RedisServer.start()
        let client = RedisClient(RedisEndpoint(loopbackPort: server.port))
        let errors = ToleratedErrors(of: "budget", log: .silent, metrics: metrics)
        let accounts = QuotaTracker(client, Budget(count: 3), errors: errors)
        let counted = #"halcyon_tolerated_errors_total{operation="budget"}"#
        try await Self.store("thing", bytes: 1, in: "a", accounts, client)
        #expect(metrics.value(of: counted) == 0)
        await server.stop()
        await accounts.insert(
            QuotaTracker.Entry(key: "lost", storedAt: "1", expiresAt: 4e12, cost: Cost(bytes: 1)), in: "a")
        await accounts.extend("thing", to: 5e12, in: "a")
        await accounts.remove("thing", "1", in: "a")
        accounts.uses.recordAccess(["thing"], in: "a")
        await accounts.uses.close()
        #expect(metrics.value(of: counted) == 4)
        await client.close()
    }
}
