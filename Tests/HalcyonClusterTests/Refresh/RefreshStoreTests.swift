import HalcyonCluster
import HalcyonModel
import Redis
import Synchronization
import TestSupport
import Testing

/// The jobs that wait for their refresh, in a real Redis.
@Suite(.limitedParallelism) struct RefreshStoreTests {
    private static func with(
        _ options: RefreshOptions = RefreshOptions(), _ body: (RefreshStore, RedisClient) async throws -> Void
    ) async throws {
        let server = try await RedisServer.start()
        let redis = RedisClient(try RedisEndpoint(server.url), settings: .patient())
        let result: Result<Void, any Error>
        do {
            result = .success(try await body(RefreshStore(redis, topics: Topics(), options: options), redis))
        } catch {
            result = .failure(error)
        }
        await redis.close()
        await server.stop()
        try result.get()
    }

    private static let message = Array("{}\n".utf8)

    @Test func claimsDueJobsThatWereAskedFor() async throws {
        try await Self.with { store, redis in
            #expect(try await !store.ask(for: "a"))
            for (id, due) in [("a", Int64(1000)), ("b", 2000), ("c", 1000)] {
                #expect(try await store.add(id, due: due, Self.message, of: id == "b" ? "t" : nil))
            }
            for id in ["a", "b"] { #expect(try await store.ask(for: id)) }
            let claim = try await store.claim(at: 1000, most: 10)
            #expect(claim.entries.map(\.id) == ["a"] && claim.entries[0].message == Self.message)
            // Nobody asked for c, so it is gone. B is not due.
            #expect(claim.forgotten == 1)
            #expect(try await !store.ask(for: "c"))
            #expect(try await store.claim(at: 1999, most: 10).entries.isEmpty)
            #expect(try await store.claim(at: 2000, most: 10).entries.map(\.id) == ["b"])
            // A claim that does not end is repeated, if the results were asked for.
            #expect(try await store.ask(for: "a"))
            let again = try await store.claim(at: 602_000, most: 10)
            #expect(again.entries.map(\.id) == ["a"] && again.forgotten == 1)
            try await store.remove("a")
            let keys = try await redis.send("KEYS", "halcyon:refresh:*").array?.compactMap(\.string) ?? []
            #expect(keys.allSatisfy { $0.hasSuffix(":rate") })
        }
    }

    @Test func removesTheJobsOfATenantOnly() async throws {
        try await Self.with { store, redis in
            for number in 0..<2500 {
                let tenant = [nil, "shop", "shop-2"][number % 3]
                _ = try await store.add("\(number)", due: 1000, Self.message, of: tenant)
                _ = try await store.ask(for: "\(number)")
            }
            try await store.removeAll(of: "shop")
            let claim = try await store.claim(at: 1000, most: 9)
            #expect(claim.entries.count == 9 && claim.entries.allSatisfy { Int($0.id)! % 3 != 1 })
            #expect(try await redis.send("ZCARD", "halcyon:refresh:{halcyon.}:due").integer == 1667)
            #expect(try await redis.send("HGET", "halcyon:refresh:{halcyon.}:tenants", "shop") == .null)
        }
    }

    @Test func schedulesOnlyKnownJobs() async throws {
        try await Self.with { store, _ in
            try await store.schedule("a", due: 1000, asked: true)
            #expect(try await !store.ask(for: "a"))
            _ = try await store.add("a", due: 1000, Self.message, of: nil)
            try await store.schedule("a", due: 3000, asked: true)
            #expect(try await store.claim(at: 2999, most: 10).entries.isEmpty)
            #expect(try await store.claim(at: 3000, most: 10).entries.count == 1)
        }
    }

    @Test func limitsTheNumberOfJobs() async throws {
        var options = RefreshOptions()
        (options.maximumJobs, options.maximumJobsPerTenant) = (3, 2)
        try await Self.with(options) { store, _ in
            var added: [Bool] = []
            for (id, tenant) in [("a", "t"), ("b", "t"), ("c", "t"), ("d", nil), ("e", "u"), ("a", "t")] {
                added.append(try await store.add(id, due: 1, Self.message, of: tenant))
            }
            #expect(added == [true, true, false, true, false, true])
            try await store.remove("a")
            try await store.remove("a")
            #expect(try await store.add("c", due: 1, Self.message, of: "t"))
            #expect(try await !store.add("e", due: 1, Self.message, of: "u"))
        }
    }

    @Test func limitsTheRate() async throws {
        var options = RefreshOptions()
        options.rate = 2
        try await Self.with(options) { store, _ in
            for id in ["a", "b", "c", "d", "e"] {
                _ = try await store.add(id, due: 1, Self.message, of: nil)
                _ = try await store.ask(for: id)
            }
            let claimed = Mutex<[String]>([])
            try await until("all jobs are claimed") {
                let entries = try await store.claim(at: 1, most: 10).entries
                #expect(entries.count <= 2)
                return claimed.withLock { claimed in
                    claimed += entries.map(\.id)
                    return claimed.count == 5
                }
            }
            #expect(claimed.withLock { $0.sorted() } == ["a", "b", "c", "d", "e"])
        }
    }

    private static let waits: [(Job.Refresh, life: Double, wait: Double?)] = [
        (.beforeExpiry, 1000, 970), (.beforeExpiry, 100, 80), (.beforeExpiry, 12.5, 10), (.every(60), 1000, 60),
        (.every(60), 50, 40), (.every(60), 12, nil), (.beforeExpiry, 12, nil), (.beforeExpiry, -5, nil),
    ]

    @Test(arguments: waits)
    func refreshesBeforeTheExpiry(rule: Job.Refresh, life: Double, wait: Double?) throws {
        let due = RefreshOptions().due(rule, expiresAt: 5000 + life, now: 5000)
        #expect(due == wait.map { 5_000_000 + Int64($0 * 1000) })
    }

    @Test func idsDependOnAllKeys() throws {
        let source = Source.initials(try Initials("A"))
        func id(_ variants: [Variant]) -> String {
            RefreshStore.id(of: Job(id: "", source: source, variants: variants).keys)
        }
        let (a, b) = (
            Variant(sizing: Sizing(goal: .original)),
            Variant(sizing: Sizing(goal: .original), output: OutputOptions(format: .png))
        )
        #expect(id([a]) != id([b]) && id([a]) != id([a, b]) && id([a, b]) != id([b, a]) && id([a]).count == 32)
    }
}
