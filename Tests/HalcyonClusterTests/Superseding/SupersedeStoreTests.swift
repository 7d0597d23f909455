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
    func theHighestGenerationHasTheSlot(on kind: RedisDeployment.Kind) async throws {
        try await Tier.with(kind) { _, redis, _ in
            let book = SupersedeStore(redis)
            #expect(await book.claim(claim(5)) == nil)
            // Delivered again, or another job of the same generation.
            #expect(await book.claim(claim(5)) == nil)
            #expect(await book.claim(claim(4)) == 5)
            #expect(await book.newer(than: claim(5)) == nil)
            #expect(await book.claim(claim(1 << 53)) == nil)
            #expect(await book.newer(than: claim(5)) == 1 << 53)
            #expect(await book.claim(claim((1 << 53) - 1)) == 1 << 53)
            // Others' slots are others.
            #expect(await book.newer(than: claim(0, "cell", "a")) == nil)
            #expect(await book.newer(than: claim(0, "else")) == nil)
            #expect(await book.claim(claim(0, "a}b{c}")) == nil)
            let left = try await redis.send("PTTL", .string(claim(5).key)).integer ?? 0
            #expect((86_000_000...86_400_000).contains(left))
        }
    }

    @Test(arguments: RedisDeployment.Kind.allCases)
    func everyWorkerHearsOfNewerGenerationsAlone(on kind: RedisDeployment.Kind) async throws {
        try await Tier.with(kind) { _, redis, deployment in
            let heard = Lock<[String]>([])
            let subscribers = try (0..<2).map { _ in
                RedisSubscriber(try RedisEndpoint(deployment.url), settings: .patient)
            }
            let listeners = subscribers.map { subscriber in
                Task {
                    await SupersedeStore.listen(subscriber) { key, generation in
                        heard.withLock { $0.append("\(generation) \(key)") }
                    }
                }
            }
            let book = SupersedeStore(redis)
            // Nothing says when both listen but a rise that both have heard of.
            let rise = Lock<Int64>(0)
            try await until("both listen") {
                let generation = rise.withLock { rise in
                    rise += 1
                    return rise
                }
                _ = await book.claim(claim(generation, "warm"))
                return heard.withLock { heard in heard.contains { one in heard.filter { $0 == one }.count == 2 } }
            }
            for generation: Int64 in [3, 3, 2, 7] { _ = await book.claim(claim(generation, "é/}", "a")) }
            let expected = "7 \(claim(7, "é/}", "a").key)"
            try await until("both have heard of 7") { heard.withLock { $0.filter { $0 == expected }.count == 2 } }
            // The first claim of a free slot, an equal one and a lower one are no news.
            #expect(heard.withLock { $0.filter { $0.hasSuffix(claim(7, "é/}", "a").key) } } == [expected, expected])
            for subscriber in subscribers { await subscriber.close() }
            for listener in listeners { await listener.value }
        }
    }

    @Test func withoutRedisNobodyIsSuperseded() async throws {
        try await Tier.with { _, redis, deployment in
            let book = SupersedeStore(redis)
            #expect(await book.claim(claim(5)) == nil)
            await deployment.stop()
            var settings = RedisSettings()
            settings.outageGrace = .milliseconds(100)
            let client = RedisClient(try RedisEndpoint(deployment.url), settings: settings)
            #expect(await SupersedeStore(client).claim(claim(4)) == nil)
            #expect(await SupersedeStore(client).newer(than: claim(4)) == nil)
            await client.close()
        }
    }

    @Test func theSlotOfAJobIsItsTenants() {
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
