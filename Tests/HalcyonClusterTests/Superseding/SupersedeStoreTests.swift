import Concurrency
import HalcyonModel
import Redis
import TestSupport
import Testing

@testable import HalcyonCluster

@Suite(.limitedParallelism) struct SupersedeStoreTests {
    private func claim(_ generation: Int64, _ name: String = "cell", _ tenant: String? = nil) -> SupersedeToken {
        SupersedeToken(name, generation: generation, of: tenant)
    }

    @Test(arguments: RedisDeployment.Kind.allCases)
    func highestGenerationWinsTheSlot(on kind: RedisDeployment.Kind) async throws {
        try await ResultCacheFixture.with(kind) { _, redis, _ in
            let store = SupersedeStore(redis)
            #expect(await store.claim(claim(5)) == nil)
            // A redelivery, or another job of the same generation.
            #expect(await store.claim(claim(5)) == nil)
            #expect(await store.claim(claim(4)) == 5)
            #expect(await store.newer(than: claim(5)) == nil)
            #expect(await store.claim(claim(1 << 53)) == nil)
            #expect(await store.newer(than: claim(5)) == 1 << 53)
            #expect(await store.claim(claim((1 << 53) - 1)) == 1 << 53)
            // Slots of other tenants and names are separate.
            #expect(await store.newer(than: claim(0, "cell", "a")) == nil)
            #expect(await store.newer(than: claim(0, "else")) == nil)
            #expect(await store.claim(claim(0, "a}b{c}")) == nil)
            let left = try await redis.send("PTTL", .string(claim(5).key)).integer ?? 0
            #expect((86_000_000...86_400_000).contains(left))
        }
    }

    @Test(arguments: RedisDeployment.Kind.allCases)
    func notifiesAllWorkersOfNewerGenerationsOnly(on kind: RedisDeployment.Kind) async throws {
        try await ResultCacheFixture.with(kind) { _, redis, deployment in
            let received = Lock<[String]>([])
            let subscribers = try (0..<2).map { _ in
                RedisSubscriber(try RedisEndpoint(deployment.url), settings: .patient())
            }
            let listeners = subscribers.map { subscriber in
                Task {
                    await SupersedeStore.listen(subscriber) { key, generation in
                        received.withLock { $0.append("\(generation) \(key)") }
                    }
                }
            }
            let store = SupersedeStore(redis)
            // Both are subscribed once both have received a notification of a higher generation.
            let latest = Lock<Int64>(0)
            try await until("both are subscribed") {
                let generation = latest.withLock { latest in
                    latest += 1
                    return latest
                }
                _ = await store.claim(claim(generation, "warm"))
                return received.withLock { received in
                    received.contains { one in received.filter { $0 == one }.count == 2 }
                }
            }
            for generation: Int64 in [3, 3, 2, 7] { _ = await store.claim(claim(generation, "é/}", "a")) }
            let expected = "7 \(claim(7, "é/}", "a").key)"
            try await until("both are notified of generation 7") {
                received.withLock { $0.filter { $0 == expected }.count == 2 }
            }
            // The first claim of a free slot, and claims of an equal or lower generation, send no notification.
            #expect(received.withLock { $0.filter { $0.hasSuffix(claim(7, "é/}", "a").key) } } == [expected, expected])
            for subscriber in subscribers { await subscriber.close() }
            for listener in listeners { await listener.value }
        }
    }

    @Test func supersedesNothingWithoutRedis() async throws {
        try await ResultCacheFixture.with { _, redis, deployment in
            let store = SupersedeStore(redis)
            #expect(await store.claim(claim(5)) == nil)
            await deployment.stop()
            var settings = RedisSettings()
            settings.outageGrace = .milliseconds(100)
            let client = RedisClient(try RedisEndpoint(deployment.url), settings: settings)
            #expect(await SupersedeStore(client).claim(claim(4)) == nil)
            #expect(await SupersedeStore(client).newer(than: claim(4)) == nil)
            await client.close()
        }
    }

    @Test func tokenCombinesTenantSlotAndGeneration() {
        var job = Job(id: "a", source: .initials(try! Initials("A")), variants: [])
        #expect(SupersedeToken(job, submitted: 7) == nil)
        job.slot = Job.DisplaySlot(name: "cell")
        #expect(SupersedeToken(job, submitted: 7) == claim(7000))
        job.tenant = "a"
        job.slot?.generation = 3
        #expect(
            SupersedeToken(job, submitted: 7)?.key == "halcyon:slot:{a/cell}"
                && SupersedeToken(job, submitted: 7)?.generation == 3)
    }
}
