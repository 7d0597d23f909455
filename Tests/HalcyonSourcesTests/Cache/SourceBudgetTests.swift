import Concurrency
import HalcyonModel
import Redis
import TestSupport
import Testing

@testable import HalcyonSources

/// The byte budget of all sources in Redis, on a server and on a cluster.
@Suite(.limitedParallelism) struct SourceBudgetTests {
    private static let keys = (0..<40).map { "halcyon:{\($0)}:source" }

    private static func with(
        _ kind: RedisDeployment.Kind = .server, _ body: (RedisClient, RedisDeployment) async throws -> Void
    ) async throws {
        let deployment = try await RedisDeployment.start(kind)
        let client = RedisClient(try RedisEndpoint(deployment.url))
        let result: Result<Void, any Error>
        do { result = .success(try await body(client, deployment)) } catch { result = .failure(error) }
        await client.close()
        await deployment.stop()
        try result.get()
    }

    private static func entry(_ count: Int) -> SourceEntry {
        SourceStoreTests.entry([UInt8](repeating: 7, count: count))
    }

    private static func cost(_ entry: SourceEntry) -> Int { entry.body.count + entry.description.count }

    /// Returns the stored sources and their bytes.
    private static func storedSizes(_ client: RedisClient) async throws -> [String: Int] {
        var found: [String: Int] = [:]
        for key in keys {
            let sizes = try await client.pipeline([
                ["HSTRLEN", .string(key), "body"], ["HSTRLEN", .string(key), "about"],
            ])
            let bytes = sizes.compactMap(\.integer).reduce(0, +)
            if bytes > 0 { found[key] = bytes }
        }
        return found
    }

    private static func recordedBytes(_ client: RedisClient) async throws -> Int {
        let text = try await client.send("HGET", "halcyon:{source-budget}:sum", "bytes").string
        return text.flatMap { Int($0) } ?? 0
    }

    /// Compares the store with the simplest model: a list in the order of use.
    @Test(.extended, arguments: RedisDeployment.Kind.allCases)
    func matchesLRUListModel(on kind: RedisDeployment.Kind) async throws {
        let budget = 20_000
        var random = SeededNumbers(seed: 11)
        try await Self.with(kind) { client, _ in
            var store = RedisSourceStore(client, maximumBytes: 1 << 20, budget: .bytes(budget))
            var list: [(key: String, cost: Int)] = []
            for step in 0..<800 {
                let key = Self.keys[Int(random.next() % UInt64(Self.keys.count))]
                switch random.next() % 12 {
                case 0..<6:
                    let entry = Self.entry(Int(random.next() % 3000))
                    try await store.store(entry, as: key, for: 600)
                    list.removeAll { $0.key == key }
                    list.append((key, Self.cost(entry)))
                    while list.reduce(0, { $0 + $1.cost }) > budget { list.removeFirst() }
                case 6..<9:
                    let found = try await store.find(key)
                    #expect((found != nil) == list.contains { $0.key == key })
                    // Closing the store records the use.
                    await store.close()
                    store = RedisSourceStore(client, maximumBytes: 1 << 20, budget: .bytes(budget))
                    if let place = list.firstIndex(where: { $0.key == key }) { list.append(list.remove(at: place)) }
                case 9:
                    try await store.remove(key)
                    list.removeAll { $0.key == key }
                case 10:
                    // Larger than the whole budget: it is not stored, and the entry that it replaces is removed.
                    try await store.store(Self.entry(budget), as: key, for: 600)
                    list.removeAll { $0.key == key }
                default:
                    let entry = Self.entry(100)
                    try await store.store(entry, as: key, for: 0.001)
                    list.removeAll { $0.key == key }
                    list.append((key, Self.cost(entry)))
                    while list.reduce(0, { $0 + $1.cost }) > budget { list.removeFirst() }
                    try await until("it expires") { try await client.send("EXISTS", .string(key)).integer == 0 }
                    list.removeAll { $0.key == key }
                    // The next entry that is stored removes it from the accounting.
                    let next = Self.keys[Int(random.next() % UInt64(Self.keys.count))]
                    try await store.store(entry, as: next, for: 600)
                    list.removeAll { $0.key == next }
                    list.append((next, Self.cost(entry)))
                    while list.reduce(0, { $0 + $1.cost }) > budget { list.removeFirst() }
                    #expect(try await Self.recordedBytes(client) == list.reduce(0) { $0 + $1.cost })
                }
                guard step % 40 == 39 else { continue }
                let found = try await Self.storedSizes(client)
                #expect(found == Dictionary(uniqueKeysWithValues: list.map { ($0.key, $0.cost) }), "step \(step)")
                let order = try await client.send("ZRANGE", "halcyon:{source-budget}:used", 0, -1).array ?? []
                #expect(order.map(\.string) == list.map(\.key), "step \(step)")
                #expect(try await Self.recordedBytes(client) == found.values.reduce(0, +), "step \(step)")
            }
            #expect(list.count > 5)
        }
    }

    @Test(arguments: RedisDeployment.Kind.allCases)
    func concurrentWorkersStayWithinBudget(on kind: RedisDeployment.Kind) async throws {
        try await Self.with(kind) { client, _ in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for worker in 0..<6 as Range<UInt64> {
                    group.addTask {
                        var random = SeededNumbers(seed: worker)
                        let store = RedisSourceStore(client, maximumBytes: 1 << 20, budget: .bytes(30_000))
                        for _ in 0..<80 {
                            let key = Self.keys[Int(random.next() % UInt64(Self.keys.count))]
                            try await store.store(Self.entry(Int(random.next() % 4000)), as: key, for: 600)
                            _ = try await store.find(key)
                        }
                        await store.close()
                    }
                }
                try await group.waitForAll()
            }
            let bytes = try await Self.storedSizes(client).values.reduce(0, +)
            #expect(try await Self.recordedBytes(client) == bytes)
            #expect((20_000...30_000).contains(bytes))
        }
    }

    @Test func cachedFailuresCountTowardBudget() async throws {
        try await Self.with { client, _ in
            let store = RedisSourceStore(client, maximumBytes: 1 << 20, budget: .bytes(2000))
            var entry = Self.entry(0)
            entry.failure = JobError(.notFound, "the origin answered 404")
            for key in Self.keys { try await store.store(entry, as: key, for: 60) }
            let found = try await Self.storedSizes(client)
            #expect(found.count == 2000 / Self.cost(entry) && found[Self.keys[39]] != nil)
            await store.close()
        }
    }

    /// The budget follows the memory of Redis, also if the memory changes.
    @Test(arguments: RedisDeployment.Kind.allCases)
    func automaticBudgetIsAQuarterOfRedis(on kind: RedisDeployment.Kind) async throws {
        try await Self.with(kind) { client, deployment in
            func budget() async -> Int? {
                await SourceBudgetReader(.automatic, client, errors: .silent).current()?.bytes
            }
            #expect(await budget() == 256 << 20)
            try await deployment.runOnAll("CONFIG", "SET", "maxmemory", "16mb")
            let total = try await client.masters().count * 16 << 20
            #expect(await budget() == total / 4)
            let store = RedisSourceStore(client, maximumBytes: 4 << 20, budget: .automatic)
            // A seventh of the budget each.
            for key in Self.keys[..<20] { try await store.store(Self.entry(total / 28), as: key, for: 600) }
            let stored = try await Self.storedSizes(client)
            #expect(stored.count == 6 && stored[Self.keys[19]] != nil)
            #expect(try await Self.recordedBytes(client) <= total / 4)
            await store.close()
        }
    }

    /// Without permission for INFO, sources are stored without a quota.
    @Test func storesWithoutAutomaticBudget() async throws {
        try await Self.with { client, redis in
            _ = try await client.send("ACL", "SETUSER", "default", "-info")
            let store = RedisSourceStore(client, maximumBytes: 1 << 20, budget: .automatic)
            for key in Self.keys { try await store.store(Self.entry(1000), as: key, for: 60) }
            #expect(try await Self.storedSizes(client).count == 40)
            await store.close()
        }
    }

    @Test func keepsNoAccountingWithoutBudget() async throws {
        try await Self.with { client, redis in
            let store = RedisSourceStore(client, maximumBytes: 1 << 20)
            for key in Self.keys { try await store.store(Self.entry(1000), as: key, for: 60) }
            _ = try await store.find(Self.keys[0])
            await store.close()
            #expect(try await redis.keyCount() == 40)
        }
    }

    @Test func storesAndRemovesDespiteBrokenAccounting() async throws {
        try await Self.with { client, _ in
            _ = try await client.send("SET", "halcyon:{source-budget}:cost", "not a hash")
            let store = RedisSourceStore(client, maximumBytes: 1 << 20, budget: .bytes(3000))
            for key in Self.keys[..<5] { try await store.store(Self.entry(1000), as: key, for: 60) }
            #expect(try await store.find(Self.keys[0])?.entry == Self.entry(1000))
            try await store.remove(Self.keys[0])
            #expect(try await Self.storedSizes(client).count == 4)
            await store.close()
        }
    }
}
