import HalcyonCluster
import HalcyonModel
import Redis
import TestSupport
import Testing

/// Jobs with different rules on one key, on a real Redis: each keeps its own, and none shortens another's.
@Suite(.limitedParallelism) struct ResultTTLPolicyTests {
    /// What one job does.
    enum Step: Sendable {
        /// Its fetch was complete, and its rule gives so many seconds.
        case stores(maxAge: Double, seconds: Double)
        /// Its fetch was complete, and its rule stores nothing.
        case refuses(maxAge: Double)
        /// It finds the result.
        case hits(maxAge: Double)
    }

    struct Row: Sendable {
        let name: String
        let steps: [Step]
        /// Seconds from the last storing to the expiry, and whose that is; nil for no result.
        let expected: (seconds: Double, rule: String)?

        init(_ name: String, _ steps: [Step], _ expected: (Double, String)?) {
            (self.name, self.steps, self.expected) = (name, steps, expected)
        }
    }

    static let rows: [Row] = [
        Row("a rule of its own", [.stores(maxAge: 60, seconds: 60)], (60, "60")),
        Row("the response's", [.stores(maxAge: 0, seconds: 300)], (300, "0")),
        Row("fractions", [.stores(maxAge: 0.25, seconds: 900.25)], (900.25, "0.25")),
        Row(
            "a longer one stores over", [.stores(maxAge: 60, seconds: 60), .stores(maxAge: 90, seconds: 90)], (90, "90")
        ),
        Row(
            "a shorter one stores over, and cuts nothing short",
            [.stores(maxAge: 900, seconds: 900), .stores(maxAge: 60, seconds: 60)], (900, "900")),
        Row(
            "the response's is shorter, and cuts nothing short",
            [.stores(maxAge: 900, seconds: 900), .stores(maxAge: 0, seconds: 5)], (900, "900")),
        Row(
            "a job's own is shorter than the response's",
            [.stores(maxAge: 0, seconds: 900), .stores(maxAge: 60, seconds: 60)], (900, "0")),
        Row(
            "the response says less than before", [.stores(maxAge: 0, seconds: 900), .stores(maxAge: 0, seconds: 60)],
            (60, "0")),
        Row("no-store takes back its own", [.stores(maxAge: 0, seconds: 900), .refuses(maxAge: 0)], nil),
        Row("no-store leaves another's", [.stores(maxAge: 60, seconds: 60), .refuses(maxAge: 0)], (60, "60")),
        Row("negative leaves all: the response's", [.stores(maxAge: 0, seconds: 9), .refuses(maxAge: -1)], (9, "0")),
        Row("negative leaves all: a job's own", [.stores(maxAge: 1, seconds: 60), .refuses(maxAge: -1)], (60, "1")),
        Row("no-store where there is nothing", [.refuses(maxAge: 0)], nil),
        Row("a hit of the same rule", [.stores(maxAge: 60, seconds: 60), .hits(maxAge: 60)], (60, "60")),
        Row("a hit of a shorter rule", [.stores(maxAge: 60, seconds: 60), .hits(maxAge: 59.999)], (60, "60")),
        Row("a hit of a longer rule", [.stores(maxAge: 60, seconds: 60), .hits(maxAge: 90)], (90, "90")),
        Row("a hit beyond the response's", [.stores(maxAge: 0, seconds: 60), .hits(maxAge: 90)], (90, "90")),
        Row("a hit by the response's rule", [.stores(maxAge: 60, seconds: 60), .hits(maxAge: 0)], (60, "60")),
        Row("a hit by a negative one", [.stores(maxAge: 60, seconds: 60), .hits(maxAge: -1)], (60, "60")),
        Row(
            "hits do not add up", [.stores(maxAge: 60, seconds: 60), .hits(maxAge: 90), .hits(maxAge: 90)], (90, "90")),
        Row(
            "what was extended is no more the response's",
            [.stores(maxAge: 0, seconds: 60), .hits(maxAge: 90), .refuses(maxAge: 0)], (90, "90")),
        Row(
            "what lives on by the response's is its to take back",
            [.stores(maxAge: 60, seconds: 60), .stores(maxAge: 0, seconds: 90), .refuses(maxAge: 0)], nil),
    ]

    @Test(arguments: RedisDeployment.Kind.allCases)
    func everyCombination(on kind: RedisDeployment.Kind) async throws {
        try await Tier.with(kind) { tier, client, redis in
            for (place, row) in Self.rows.enumerated() {
                try await check(row, "halcyon:{\(place)}:1", tier, client)
            }
        }
    }

    private func check(_ row: Row, _ key: String, _ tier: ResultCache, _ client: RedisClient) async throws {
        var expiresAt: Double?
        for (number, step) in row.steps.enumerated() {
            switch step {
            case .stores(let maxAge, let seconds):
                expiresAt = try await tier.store(
                    [UInt8(number)], Tier.facts, as: key, for: seconds, by: ResultTTLPolicy(maxAge: maxAge))
                #expect(try await tier.read(key)?.body == [UInt8(number)])
            case .refuses(let maxAge):
                try await tier.remove(key, by: ResultTTLPolicy(maxAge: maxAge))
            case .hits(let maxAge):
                let found = try #require(try await tier.find(key, for: ResultTTLPolicy(maxAge: maxAge)), "\(row.name)")
                expiresAt = try await tier.extend(found, as: key, by: ResultTTLPolicy(maxAge: maxAge))?.expiresAt
            }
        }
        let fields = try await client.send("HMGET", .string(key), "storedAt", "expiresAt", "rule").array ?? []
        guard let expected = row.expected else {
            #expect(!fields.contains { !$0.isNull }, "\(row.name)")
            return
        }
        let (stored, expires) = (try #require(fields[0].number), try #require(fields[1].number))
        // An expiry that was there before is from a moment earlier.
        let earlier = stored.rounded(.down) + expected.seconds * 1000 - expires
        let storings = row.steps.count { if case .stores = $0 { true } else { false } }
        #expect(storings == 1 ? earlier == 0 : (0...120_000).contains(earlier), "\(row.name)")
        #expect(fields[2].string == expected.rule, "\(row.name)")
        #expect(try await client.send("PEXPIRETIME", .string(key)).integer == Int(expires), "\(row.name)")
        #expect(expiresAt == expires / 1000, "\(row.name)")
    }

    @Test func aHitOfTheSameRuleAsksForNothingMore() async throws {
        try await Tier.with { tier, client, redis in
            let key = "halcyon:{0}:1"
            let rule = ResultTTLPolicy(maxAge: 33.333_333_3)
            guard case .own(let seconds) = rule else { throw NotInTime(description: "\(rule)") }
            _ = try await tier.store([1], Tier.facts, as: key, for: seconds, by: rule)
            let found = try #require(try await tier.find(key, for: rule))
            let before = try await client.commandsDone()
            #expect(try await tier.extend(found, as: key, by: rule) == found)
            #expect(try await tier.extend(found, as: key, by: .response) == found)
            #expect(try await client.commandsDone() == before + 1)
        }
    }

    @Test func whatHasGoneMeanwhileIsNoHit() async throws {
        try await Tier.with { tier, client, redis in
            let key = "halcyon:{0}:1"
            _ = try await tier.store([1], Tier.facts, as: key, for: 60, by: .response)
            let found = try #require(try await tier.find(key, for: ResultTTLPolicy(maxAge: 90)))
            _ = try await client.send("DEL", .string(key))
            #expect(try await tier.extend(found, as: key, by: ResultTTLPolicy(maxAge: 90)) == nil)
        }
    }

    /// What a version without `storedAt` and `rule` wrote is found, keeps its expiry, and is nobody's to take back.
    @Test func anOlderVersionsResultIsKept() async throws {
        try await Tier.with { tier, client, redis in
            let key = "halcyon:{0}:1"
            _ = try await tier.store([1], Tier.facts, as: key, for: 600, by: .response)
            _ = try await client.send("HDEL", .string(key), "storedAt", "rule")
            let found = try #require(try await tier.find(key, for: ResultTTLPolicy(maxAge: 900)))
            #expect(try await tier.extend(found, as: key, by: ResultTTLPolicy(maxAge: 900)) == found)
            #expect(try await tier.remove(key, by: .response) == false)
            let expiresAt = try await tier.store([2], Tier.facts, as: key, for: 60, by: .response)
            #expect(expiresAt == found.expiresAt)
            #expect(try await tier.remove(key, by: .response) == false)
        }
    }

    @Test(arguments: RedisDeployment.Kind.allCases)
    func twoJobsThatRaceEachKeepTheirRule(on kind: RedisDeployment.Kind) async throws {
        try await Tier.with(kind) { tier, client, redis in
            for round in 0..<100 {
                let key = "halcyon:{\(round)}:1"
                async let short = tier.store([1], Tier.facts, as: key, for: 60, by: ResultTTLPolicy(maxAge: 60))
                async let long = tier.store([2], Tier.facts, as: key, for: 900, by: ResultTTLPolicy(maxAge: 900))
                async let refusal = tier.remove(key, by: .response)
                let (first, second, removed) = try await (short ?? 0, long ?? 0, refusal)
                #expect(!removed && max(first, second) - min(first, second) < 900)
                let found = try #require(try await tier.find(key, for: ResultTTLPolicy(maxAge: 5000)))
                #expect(found.expiresAt == max(first, second))
                let rule = try await client.send("HGET", .string(key), "rule").string
                #expect(rule == "900")

                async let extended = tier.extend(found, as: key, by: ResultTTLPolicy(maxAge: 5000))
                async let again = tier.store([3], Tier.facts, as: key, for: 60, by: ResultTTLPolicy(maxAge: 60))
                _ = try await (extended, again)
                let end = try #require(try await tier.find(key))
                #expect(end.expiresAt - found.expiresAt > 4000)
            }
        }
    }
}
