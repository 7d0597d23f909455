import HalcyonCluster
import HalcyonCoordination
import HalcyonModel
import Redis
import TestSupport
import Testing

/// Budgets of the result cache on a real Redis: usage is exact, and the least recently used results are evicted.
@Suite(.limitedParallelism) struct ResultBudgetTests {
    static let keys = (0..<60).map { "halcyon:{\($0 % 7)}:\($0)" }

    /// Returns the cost of each stored result, computed from the results.
    static func costs(_ client: RedisClient, _ keys: [String] = keys) async throws -> [String: QuotaModel.Entry] {
        var found: [String: QuotaModel.Entry] = [:]
        let cache = ResultCache(client)
        for (key, result) in zip(keys, try await cache.read(keys)) {
            guard let result else { continue }
            let facts = result.result.facts
            found[key] = .init(
                bytes: result.body.count, pixels: facts.width * facts.height * (facts.frames ?? 1))
        }
        return found
    }

    static func store(
        _ cache: ResultCache, _ key: String, bytes: Int, width: Int = 1, frames: Int? = nil, for lifetime: Double = 600,
        by rule: ResultTTLPolicy = .response, of tenant: String? = nil
    ) async throws {
        _ = try await cache.store(
            Array(repeating: 7, count: bytes),
            ResultCacheFixture.metadata(bytes: bytes, width: width, height: 1, frames: frames),
            as: key, for: lifetime, by: rule, of: tenant)
    }

    @Test(.extended, arguments: [(1, .server), (2, .server), (3, .cluster)] as [(UInt64, RedisDeployment.Kind)])
    func randomOperationsMatchTheModel(seed: UInt64, on kind: RedisDeployment.Kind) async throws {
        var random = SeededNumbers(seed: seed)
        let budget = [
            Budget(bytes: 20_000), Budget(pixels: 9_000, count: 40),
            Budget(bytes: 30_000, pixels: 12_000, count: 25),
        ][Int(seed) - 1]
        try await ResultCacheFixture.with(kind) { _, client, redis in
            var cache = ResultCache(client, budget: budget)
            var model = QuotaModel(budget)
            for number in 0..<2500 {
                let key = Self.keys.randomElement(using: &random)!
                switch Int.random(in: 0..<20, using: &random) {
                case 0..<9:
                    let entry = QuotaModel.Entry(
                        bytes: .random(in: 0...2000, using: &random), pixels: .random(in: 1...900, using: &random))
                    try await Self.store(cache, key, bytes: entry.bytes, width: entry.pixels)
                    model.store(key, entry)
                case 9:
                    // The result expires before the next operation.
                    try await Self.store(cache, key, bytes: 500, width: 50, for: 0.001)
                    model.store(key, .init(bytes: 500, pixels: 50))
                    try await until("the result has expired") {
                        try await client.send("EXISTS", .string(key)).integer == 0
                    }
                    model.remove(key)
                case 10..<16:
                    let keys = (0..<3).map { _ in Self.keys.randomElement(using: &random)! }
                    cache.used(keys, of: nil)
                    await cache.close()
                    cache = ResultCache(client, budget: budget)
                    for key in keys { model.use(key) }
                case 16:
                    try await cache.remove(key, by: .response)
                    model.remove(key)
                case 17:
                    if let found = try await cache.find(key, for: ResultTTLPolicy(maxAge: 700)) {
                        _ = try await cache.extend(found, as: key, by: ResultTTLPolicy(maxAge: 700))
                        // The result now has this policy. Store it again, so that the response's policy may remove it.
                        let entry = try #require(model.entries[key])
                        _ = try await client.send("HSET", .string(key), "rule", "0")
                        try await Self.store(cache, key, bytes: entry.bytes, width: entry.pixels)
                        model.store(key, entry)
                    }
                case 18:
                    let least = Budget(bytes: max(0, model.bytes - .random(in: 0...3000, using: &random)))
                    let (removed, left) = try await ResultCache(client).trim(nil, to: least)
                    let before = model
                    model.trim(to: least)
                    #expect(left.bytes == model.bytes && left.pixels == model.pixels)
                    #expect(removed.count == before.entries.count - model.entries.count)
                    #expect(removed.bytes == before.bytes - model.bytes)
                default:
                    // A use of an unknown key is not recorded.
                    cache.used(["halcyon:{0}:unknown"], of: nil)
                }
                if number % 50 == 0 {
                    #expect(try await Self.costs(client) == model.entries, "operation \(number)")
                    let quotas = try await ResultCache(client).trim(nil, to: Budget()).left
                    #expect(quotas == QuotaUsage(model), "operation \(number)")
                    let order = try await client.send("ZRANGE", "halcyon:{budget:}:used", 0, -1).array ?? []
                    #expect(order.map(\.string) == model.keys, "operation \(number)")
                }
            }
            #expect(model.entries.count > 5)
            // The quota keys are removed with the last result. The index of a source expires when its results would
            // have.
            _ = try await ResultCache(client).trim(nil, to: Budget(count: 0))
            let names = ["used", "expiry", "cost", "sum"].map { RedisArgument.string("halcyon:{budget:}:\($0)") }
            #expect(try await client.send(["EXISTS"] + names).integer == 0)
        }
    }

    @Test(arguments: RedisDeployment.Kind.allCases)
    func concurrentWorkersStayWithinBudget(on kind: RedisDeployment.Kind) async throws {
        try await ResultCacheFixture.with(kind) { _, client, redis in
            let budget = Budget(bytes: 40_000)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for worker in 0..<8 as Range<UInt64> {
                    group.addTask {
                        var random = SeededNumbers(seed: worker)
                        let cache = ResultCache(client, budget: budget)
                        for _ in 0..<150 {
                            let key = Self.keys.randomElement(using: &random)!
                            try await Self.store(cache, key, bytes: .random(in: 1...3000, using: &random))
                            cache.used([Self.keys.randomElement(using: &random)!], of: nil)
                        }
                        await cache.close()
                    }
                }
                try await group.waitForAll()
            }
            let found = try await Self.costs(client)
            let quotas = try await ResultCache(client).trim(nil, to: Budget()).left
            #expect(quotas.count == found.count && quotas.bytes == found.values.reduce(0) { $0 + $1.bytes })
            #expect((30_000...40_000).contains(quotas.bytes))
        }
    }

    @Test func unlimitedBudgetTracksNothing() async throws {
        try await ResultCacheFixture.with { cache, client, redis in
            try await Self.store(cache, Self.keys[0], bytes: 10)
            let before = try await client.processedCommands()
            try await Self.store(cache, Self.keys[0], bytes: 10)
            cache.used([Self.keys[0]], of: nil)
            await cache.close()
            // EVALSHA with TIME, HMGET, HSET and PEXPIREAT, two for fencing tokens, five for the index of the source,
            // and the command that reads the counter.
            #expect(try await client.processedCommands() - before <= 13)
            #expect(try await redis.keyCount() == 2)
        }
    }

    @Test func tenantsHaveSeparateBudgets() async throws {
        try await ResultCacheFixture.with(budget: Budget(count: 2)) { cache, client, redis in
            for key in Self.keys[0..<5] { try await Self.store(cache, key, bytes: 10, of: "a") }
            for key in Self.keys[5..<8] { try await Self.store(cache, key, bytes: 10, of: "b.c") }
            try await Self.store(cache, Self.keys[8], bytes: 10)
            #expect(try await Self.costs(client).keys.sorted() == [3, 4, 6, 7, 8].map { Self.keys[$0] }.sorted())
            let (removed, left) = try await ResultCache(client).trim("a", to: Budget(bytes: 15))
            #expect(removed.count == 1 && removed.bytes == 10 && left.count == 1)
            #expect(try await Self.costs(client)[Self.keys[3]] == nil)
        }
    }

    @Test func evictsLeastRecentlyUsedAndIgnoresLookups() async throws {
        try await ResultCacheFixture.with(budget: Budget(count: 3)) { cache, client, redis in
            for key in Self.keys[0..<3] { try await Self.store(cache, key, bytes: 10) }
            cache.used([Self.keys[0]], of: nil)
            // The use is written after a delay.
            try await until("the use is recorded") {
                try await client.send("ZRANK", "halcyon:{budget:}:used", .string(Self.keys[0])).integer == 2
            }
            _ = try await cache.find(Self.keys[1])
            _ = try await cache.read(Self.keys[1])
            _ = try await client.send("HGET", .string(Self.keys[1]), "body")
            try await Self.store(cache, Self.keys[3], bytes: 10)
            #expect(try await Self.costs(client).keys.sorted() == [0, 2, 3].map { Self.keys[$0] }.sorted())
        }
    }

    @Test func framesCountAsPixels() async throws {
        try await ResultCacheFixture.with(budget: Budget(pixels: 100)) { cache, client, redis in
            try await Self.store(cache, Self.keys[0], bytes: 1, width: 10, frames: 9)
            try await Self.store(cache, Self.keys[1], bytes: 1, width: 11)
            #expect(try await Self.costs(client).keys.sorted() == [Self.keys[1]])
            #expect(cache.canHold(ResultCacheFixture.metadata(bytes: 1, width: 10, height: 10)))
            #expect(!cache.canHold(ResultCacheFixture.metadata(bytes: 1, width: 10, height: 10, frames: 2)))
        }
    }

    @Test func extendedResultCountsUntilItsNewExpiry() async throws {
        try await ResultCacheFixture.with(budget: Budget(count: 9)) { cache, client, redis in
            try await Self.store(cache, Self.keys[0], bytes: 10, for: 60)
            let found = try #require(try await cache.find(Self.keys[0], for: ResultTTLPolicy(maxAge: 600)))
            _ = try await cache.extend(found, as: Self.keys[0], by: ResultTTLPolicy(maxAge: 600))
            let score = try await client.send("ZSCORE", "halcyon:{budget:}:expiry", .string(Self.keys[0])).number
            let expiry = try await client.send("PEXPIRETIME", .string(Self.keys[0])).integer
            #expect(score.map { Int($0) } == expiry)
            // The quota keys live as long as their entries.
            for part in ["used", "expiry", "cost", "sum"] {
                #expect(try await client.send("PEXPIRETIME", "halcyon:{budget:}:\(part)").integer == expiry)
            }
        }
    }

    /// The quota refers to the version that was recorded, not to the one that was stored since.
    @Test func trimKeepsResultsStoredAgain() async throws {
        try await ResultCacheFixture.with(budget: Budget(count: 2)) { cache, client, redis in
            try await Self.store(cache, Self.keys[0], bytes: 10)
            // A worker crashes after storing and before recording the result.
            try await Self.store(ResultCache(client), Self.keys[0], bytes: 20)
            let (removed, left) = try await ResultCache(client).trim(nil, to: Budget(count: 0))
            #expect(removed == QuotaUsage() && left == QuotaUsage())
            #expect(try await Self.costs(client)[Self.keys[0]]?.bytes == 20)
            // The result counts again once it is stored again.
            try await Self.store(cache, Self.keys[0], bytes: 30)
            #expect(try await ResultCache(client).trim(nil, to: Budget()).left.bytes == 30)
        }
    }

    @Test func quotaRestartsAfterPartialDataLoss() async throws {
        for part in ["used", "expiry", "cost", "sum"] {
            try await ResultCacheFixture.with(budget: Budget(bytes: 100)) { cache, client, redis in
                for key in Self.keys[0..<4] { try await Self.store(cache, key, bytes: 20) }
                _ = try await client.send("DEL", "halcyon:{budget:}:\(part)")
                for key in Self.keys[4..<8] { try await Self.store(cache, key, bytes: 30) }
                let left = try await ResultCache(client).trim(nil, to: Budget()).left
                #expect(left.count == 3 && left.bytes == 90)
                #expect(try await Self.costs(client).count == 4 + 3)
            }
        }
    }

    @Test(arguments: RedisDeployment.Kind.allCases)
    func trimsAndEvictsManyResults(on kind: RedisDeployment.Kind) async throws {
        try await ResultCacheFixture.with(kind, budget: Budget(bytes: 1 << 30)) { cache, client, redis in
            let keys = (0..<1500).map { "halcyon:{\($0)}:x" }
            for key in keys { try await Self.store(cache, key, bytes: 1) }
            let (removed, left) = try await ResultCache(client).trim(nil, to: Budget(count: 100))
            #expect(removed.count == 1400 && left.count == 100)
            #expect(try await Self.costs(client, keys).keys.sorted() == keys[1400...].sorted())
            // A result that takes the whole budget evicts all others.
            let small = ResultCache(client, budget: Budget(bytes: 50))
            try await Self.store(small, "halcyon:{0}:large", bytes: 50)
            #expect(try await Self.costs(client, keys).isEmpty)
        }
    }

    @Test func storesResultsWhenQuotaKeysAreBroken() async throws {
        try await ResultCacheFixture.with(budget: Budget(count: 1)) { cache, client, redis in
            _ = try await client.send("SET", "halcyon:{budget:}:cost", "not a hash")
            try await Self.store(cache, Self.keys[0], bytes: 10)
            try await Self.store(cache, Self.keys[1], bytes: 10)
            #expect(try await Self.costs(client).count == 2)
            await #expect(throws: RedisError.self) {
                try await ResultCache(client).trim(nil, to: Budget(count: 0))
            }
        }
    }
}

extension QuotaUsage {
    init(_ model: QuotaModel) {
        self.init(count: model.entries.count, bytes: model.bytes, pixels: model.pixels)
    }
}
