import HalcyonCoordination
import Redis
import Telemetry
import TestSupport
import Testing

/// Quotas on a real Redis, with plain hashes with a field `storedAt` as entries. The tests of results and of sources
/// cover thousands of operations.
@Suite(.limitedParallelism) struct QuotaStoreTests {
    private static func withTracker(_ body: (QuotaTracker, RedisClient) async throws -> Void) async throws {
        let server = try await RedisServer.start()
        let client = RedisClient(try RedisEndpoint(server.url), settings: .patient())
        let tracker = QuotaTracker(client, Budget(bytes: 100, count: 3))
        let result: Result<Void, any Error>
        do { result = .success(try await body(tracker, client)) } catch { result = .failure(error) }
        await tracker.uses.close()
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
        _ key: String, bytes: Int, in quota: String, _ tracker: QuotaTracker, _ client: RedisClient
    ) async throws {
        let stored = try #require(try await client.run(storing, keys: [.string(key)]).string)
        await tracker.insert(
            QuotaTracker.Entry(key: key, storedAt: stored, expiresAt: 4e12, cost: Cost(bytes: bytes)), in: quota)
    }

    private static func storedKeys(_ client: RedisClient) async throws -> [String] {
        let keys = try await client.send("KEYS", "thing*").array ?? []
        return keys.compactMap(\.string).sorted()
    }

    @Test func quotasHaveSeparateEntriesAndBudgets() async throws {
        try await Self.withTracker { tracker, client in
            for number in 0..<5 {
                try await Self.store("thing-a\(number)", bytes: 10, in: "a", tracker, client)
                try await Self.store("thing-b\(number)", bytes: 45, in: "b", tracker, client)
            }
            #expect(
                try await Self.storedKeys(client) == ["thing-a2", "thing-a3", "thing-a4", "thing-b3", "thing-b4"])
            let (removed, left) = try await QuotaStore(client).trim("a", to: Budget(count: 1))
            #expect(removed == QuotaUsage(count: 2, bytes: 20) && left == QuotaUsage(count: 1, bytes: 10))
            #expect(try await QuotaStore(client).trim("b", to: Budget()).left == QuotaUsage(count: 2, bytes: 90))
            #expect(try await QuotaStore(client).trim("c", to: Budget(count: 0)).left == QuotaUsage())
            #expect(try await client.send("EXISTS", "halcyon:{a}:sum", "halcyon:{b}:sum").integer == 2)
        }
    }

    @Test func keepsRecentlyUsedEntries() async throws {
        try await Self.withTracker { tracker, client in
            for number in 0..<3 { try await Self.store("thing\(number)", bytes: 1, in: "a", tracker, client) }
            tracker.uses.recordAccess(["thing0"], in: "a")
            // Uses are written when the recorder is closed, at the latest.
            await tracker.uses.close()
            try await Self.store("thing3", bytes: 1, in: "a", tracker, client)
            #expect(try await Self.storedKeys(client) == ["thing0", "thing2", "thing3"])
        }
    }

    @Test func timestampsAlwaysIncrease() async throws {
        try await Self.withTracker { _, client in
            // As if the clock had been set back.
            _ = try await client.send("HSET", "thing", "storedAt", "4000000000000.123")
            var last = 4_000_000_000_000.123
            for _ in 0..<5 {
                let stored = try await client.run(Self.storing, keys: ["thing"]).string.flatMap(Double.init)
                #expect(try #require(stored) > last)
                last = stored ?? 0
            }
        }
    }

    @Test func toleratesAndCountsRedisErrors() async throws {
        let metrics = Metrics()
        let server = try await RedisServer.start()
        // Commands fail soon after the server was stopped.
        let client = RedisClient(try RedisEndpoint(server.url), settings: .patient(outageGrace: .milliseconds(500)))
        let errors = ToleratedErrors(of: "budget", log: .silent, metrics: metrics)
        let tracker = QuotaTracker(client, Budget(count: 3), errors: errors)
        let counted = #"halcyon_tolerated_errors_total{operation="budget"}"#
        try await Self.store("thing", bytes: 1, in: "a", tracker, client)
        #expect(metrics.value(of: counted) == 0)
        await server.stop()
        await tracker.insert(
            QuotaTracker.Entry(key: "lost", storedAt: "1", expiresAt: 4e12, cost: Cost(bytes: 1)), in: "a")
        await tracker.extend("thing", to: 5e12, in: "a")
        await tracker.remove("thing", "1", in: "a")
        tracker.uses.recordAccess(["thing"], in: "a")
        await tracker.uses.close()
        #expect(metrics.value(of: counted) == 4)
        await client.close()
    }
}
