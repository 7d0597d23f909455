import HalcyonCluster
import HalcyonModel
import Redis
import TestSupport
import Testing

/// Jobs with different TTL policies on one key, on a real Redis. Each gets its own TTL, and none shortens another's.
@Suite(.limitedParallelism) struct ResultTTLPolicyTests {
    /// An operation of a job.
    enum Step: Sendable {
        /// It stores the result with a TTL of `seconds`.
        case stores(maxAge: Double, seconds: Double)
        /// Its policy does not allow storing the result.
        case refuses(maxAge: Double)
        /// It has a cache hit.
        case hits(maxAge: Double)
    }

    struct Row: Sendable {
        let name: String
        let steps: [Step]
        /// Seconds from the last store to the expiry, and the policy that the expiry is from; nil for no result.
        let expected: (seconds: Double, rule: String)?

        init(_ name: String, _ steps: [Step], _ expected: (Double, String)?) {
            (self.name, self.steps, self.expected) = (name, steps, expected)
        }
    }

    static let rows: [Row] = [
        Row("a policy of its own", [.stores(maxAge: 60, seconds: 60)], (60, "60")),
        Row("the response's policy", [.stores(maxAge: 0, seconds: 300)], (300, "0")),
        Row("fractional seconds", [.stores(maxAge: 0.25, seconds: 900.25)], (900.25, "0.25")),
        Row(
            "a longer TTL overwrites", [.stores(maxAge: 60, seconds: 60), .stores(maxAge: 90, seconds: 90)], (90, "90")
        ),
        Row(
            "a shorter TTL overwrites without shortening",
            [.stores(maxAge: 900, seconds: 900), .stores(maxAge: 60, seconds: 60)], (900, "900")),
        Row(
            "a shorter TTL of the response does not shorten",
            [.stores(maxAge: 900, seconds: 900), .stores(maxAge: 0, seconds: 5)], (900, "900")),
        Row(
            "a job's TTL is shorter than the response's",
            [.stores(maxAge: 0, seconds: 900), .stores(maxAge: 60, seconds: 60)], (900, "0")),
        Row(
            "the response's TTL becomes shorter", [.stores(maxAge: 0, seconds: 900), .stores(maxAge: 0, seconds: 60)],
            (60, "0")),
        Row(
            "no-store removes the result of its own policy", [.stores(maxAge: 0, seconds: 900), .refuses(maxAge: 0)],
            nil),
        Row(
            "no-store keeps the result of another policy", [.stores(maxAge: 60, seconds: 60), .refuses(maxAge: 0)],
            (60, "60")),
        Row(
            "a negative maxAge removes nothing of the response",
            [.stores(maxAge: 0, seconds: 9), .refuses(maxAge: -1)], (9, "0")),
        Row(
            "a negative maxAge removes nothing of a job", [.stores(maxAge: 1, seconds: 60), .refuses(maxAge: -1)],
            (60, "1")),
        Row("no-store without a result", [.refuses(maxAge: 0)], nil),
        Row("a hit with the same policy", [.stores(maxAge: 60, seconds: 60), .hits(maxAge: 60)], (60, "60")),
        Row("a hit with a shorter TTL", [.stores(maxAge: 60, seconds: 60), .hits(maxAge: 59.999)], (60, "60")),
        Row("a hit with a longer TTL", [.stores(maxAge: 60, seconds: 60), .hits(maxAge: 90)], (90, "90")),
        Row(
            "a hit with a longer TTL than the response's", [.stores(maxAge: 0, seconds: 60), .hits(maxAge: 90)],
            (90, "90")),
        Row("a hit with the response's policy", [.stores(maxAge: 60, seconds: 60), .hits(maxAge: 0)], (60, "60")),
        Row("a hit with a negative maxAge", [.stores(maxAge: 60, seconds: 60), .hits(maxAge: -1)], (60, "60")),
        Row(
            "repeated hits extend once", [.stores(maxAge: 60, seconds: 60), .hits(maxAge: 90), .hits(maxAge: 90)],
            (90, "90")),
        Row(
            "an extended result is kept by no-store",
            [.stores(maxAge: 0, seconds: 60), .hits(maxAge: 90), .refuses(maxAge: 0)], (90, "90")),
        Row(
            "no-store removes a result that the response extended",
            [.stores(maxAge: 60, seconds: 60), .stores(maxAge: 0, seconds: 90), .refuses(maxAge: 0)], nil),
    ]

    @Test(arguments: RedisDeployment.Kind.allCases)
    func appliesEveryPolicyCombination(on kind: RedisDeployment.Kind) async throws {
        try await ResultCacheFixture.with(kind) { cache, client, redis in
            for (index, row) in Self.rows.enumerated() {
                try await check(row, "halcyon:{\(index)}:1", cache, client)
            }
        }
    }

    private func check(_ row: Row, _ key: String, _ cache: ResultCache, _ client: RedisClient) async throws {
        var expiresAt: Double?
        for (number, step) in row.steps.enumerated() {
            switch step {
            case .stores(let maxAge, let seconds):
                expiresAt = try await cache.store(
                    [UInt8(number)], ResultCacheFixture.metadata, as: key, for: seconds,
                    by: ResultTTLPolicy(maxAge: maxAge))?.expiresAt
                #expect(try await cache.read(key)?.body == [UInt8(number)])
            case .refuses(let maxAge):
                try await cache.remove(key, by: ResultTTLPolicy(maxAge: maxAge))
            case .hits(let maxAge):
                let found = try #require(try await cache.find(key, for: ResultTTLPolicy(maxAge: maxAge)), "\(row.name)")
                expiresAt = try await cache.extend(found, as: key, by: ResultTTLPolicy(maxAge: maxAge))?.expiresAt
            }
        }
        let fields = try await client.send("HMGET", .string(key), "storedAt", "expiresAt", "rule").array ?? []
        guard let expected = row.expected else {
            #expect(!fields.contains { !$0.isNull }, "\(row.name)")
            return
        }
        let (stored, expires) = (try #require(fields[0].number), try #require(fields[1].number))
        // An expiry of an earlier store is relative to the time of that store.
        let earlier = stored.rounded(.down) + expected.seconds * 1000 - expires
        let storeCount = row.steps.count { if case .stores = $0 { true } else { false } }
        #expect(storeCount == 1 ? earlier == 0 : (0...120_000).contains(earlier), "\(row.name)")
        #expect(fields[2].string == expected.rule, "\(row.name)")
        #expect(try await client.send("PEXPIRETIME", .string(key)).integer == Int(expires), "\(row.name)")
        #expect(expiresAt == expires / 1000, "\(row.name)")
    }

    @Test func hitWithTheSamePolicySendsNoCommand() async throws {
        try await ResultCacheFixture.with { cache, client, redis in
            let key = "halcyon:{0}:1"
            let rule = ResultTTLPolicy(maxAge: 33.333_333_3)
            guard case .own(let seconds) = rule else { throw ConditionTimeout(description: "\(rule)") }
            _ = try await cache.store([1], ResultCacheFixture.metadata, as: key, for: seconds, by: rule)
            let found = try #require(try await cache.find(key, for: rule))
            let before = try await client.processedCommands()
            #expect(try await cache.extend(found, as: key, by: rule) == found)
            #expect(try await cache.extend(found, as: key, by: .response) == found)
            #expect(try await client.processedCommands() == before + 1)
        }
    }

    @Test func extendReturnsNilForADeletedResult() async throws {
        try await ResultCacheFixture.with { cache, client, redis in
            let key = "halcyon:{0}:1"
            _ = try await cache.store([1], ResultCacheFixture.metadata, as: key, for: 60, by: .response)
            let found = try #require(try await cache.find(key, for: ResultTTLPolicy(maxAge: 90)))
            _ = try await client.send("DEL", .string(key))
            #expect(try await cache.extend(found, as: key, by: ResultTTLPolicy(maxAge: 90)) == nil)
        }
    }

    /// A result of a version without `storedAt` and `rule` is found, keeps its expiry, and is not removed by policy.
    @Test func keepsResultsOfOlderVersions() async throws {
        try await ResultCacheFixture.with { cache, client, redis in
            let key = "halcyon:{0}:1"
            _ = try await cache.store([1], ResultCacheFixture.metadata, as: key, for: 600, by: .response)
            _ = try await client.send("HDEL", .string(key), "storedAt", "rule")
            let found = try #require(try await cache.find(key, for: ResultTTLPolicy(maxAge: 900)))
            #expect(try await cache.extend(found, as: key, by: ResultTTLPolicy(maxAge: 900)) == found)
            #expect(try await cache.remove(key, by: .response) == false)
            let life = try await cache.store([2], ResultCacheFixture.metadata, as: key, for: 60, by: .response)
            #expect(life?.expiresAt == found.expiresAt)
            #expect(try await cache.remove(key, by: .response) == false)
        }
    }

    @Test(arguments: RedisDeployment.Kind.allCases)
    func concurrentJobsKeepTheLongerTTL(on kind: RedisDeployment.Kind) async throws {
        try await ResultCacheFixture.with(kind) { cache, client, redis in
            for round in 0..<100 {
                let key = "halcyon:{\(round)}:1"
                async let short = cache.store(
                    [1], ResultCacheFixture.metadata, as: key, for: 60, by: ResultTTLPolicy(maxAge: 60))
                async let long = cache.store(
                    [2], ResultCacheFixture.metadata, as: key, for: 900, by: ResultTTLPolicy(maxAge: 900))
                async let refusal = cache.remove(key, by: .response)
                let (first, second, removed) = try await (short?.expiresAt ?? 0, long?.expiresAt ?? 0, refusal)
                #expect(!removed && max(first, second) - min(first, second) < 900)
                let found = try #require(try await cache.find(key, for: ResultTTLPolicy(maxAge: 5000)))
                #expect(found.expiresAt == max(first, second))
                let rule = try await client.send("HGET", .string(key), "rule").string
                #expect(rule == "900")

                async let extended = cache.extend(found, as: key, by: ResultTTLPolicy(maxAge: 5000))
                async let again = cache.store(
                    [3], ResultCacheFixture.metadata, as: key, for: 60, by: ResultTTLPolicy(maxAge: 60))
                _ = try await (extended, again)
                let end = try #require(try await cache.find(key))
                #expect(end.expiresAt - found.expiresAt > 4000)
            }
        }
    }
}
