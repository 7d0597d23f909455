import Concurrency
import HalcyonModel
import Redis
import Subprocess
import TestSupport
import Testing

@testable import HalcyonSources

@Suite(.limitedParallelism) struct OriginRateLimiterTests {
    let origin = Origin("https://img.example.org")

    /// Acquires permits for `loads` loads from these limiters, and returns the maximum in flight at once. Each
    /// load waits until the expected number is in flight, so that the result does not depend on the machine's speed.
    private func maximumInFlight(
        _ loads: Int, through limiters: [OriginRateLimiter], expecting expected: Int
    ) async throws -> Int {
        let running = Lock((now: 0, most: 0))
        try await withThrowingTaskGroup(of: Void.self) { group in
            for load in 0..<loads {
                group.addTask { [origin] in
                    let rateLimiter = limiters[load % limiters.count]
                    let pass = try await rateLimiter.acquire(origin, "u")
                    running.withLock { running in
                        running.now += 1
                        running.most = max(running.most, running.now)
                    }
                    try await until("\(expected) are in flight") { running.withLock { $0.most >= expected } }
                    // Leaves time for one more load, in case it is let through.
                    try await Task.sleep(for: .milliseconds(10))
                    running.withLock { $0.now -= 1 }
                    await rateLimiter.release(pass, .answered)
                }
            }
            try await group.waitForAll()
        }
        return running.withLock { $0.most }
    }

    @Test func workersShareTheConcurrencyLimit() async throws {
        let server = try await RedisServer.start()
        let clients = try (0..<3).map { _ in RedisClient(try RedisEndpoint(server.url)) }
        var limits = OriginLimits()
        limits.concurrency = 4
        limits.lease = .seconds(600)
        let limiters = clients.map { OriginRateLimiter($0, limits) }
        #expect(try await maximumInFlight(120, through: limiters, expecting: 4) == 4)
        for client in clients { await client.close() }
        await server.stop()
    }

    @Test func usesHalfTheLimitDuringRedisOutage() async throws {
        var limits = OriginLimits()
        limits.concurrency = 6
        limits.lease = .seconds(600)
        #expect(try await maximumInFlight(30, through: [OriginRateLimiter(nil, limits)], expecting: 6) == 6)
        let client = RedisClient(RedisEndpoint(loopbackPort: LoopbackPort.reserve()))
        #expect(try await maximumInFlight(30, through: [OriginRateLimiter(client, limits)], expecting: 3) == 3)
        await client.close()
    }

    @Test func cancelledWaiterDoesNotAffectOthers() async throws {
        var limits = OriginLimits()
        limits.concurrency = 1
        limits.lease = .seconds(600)
        let rateLimiter = OriginRateLimiter(nil, limits)
        let first = try await rateLimiter.acquire(origin, "u")
        let waiting = (0..<3).map { _ in Task { [origin] in try await rateLimiter.acquire(origin, "u") } }
        try await Task.sleep(for: .milliseconds(50))
        waiting[0].cancel()
        waiting[1].cancel()
        await #expect(throws: CancellationError.self) { try await waiting[0].value }
        await #expect(throws: CancellationError.self) { try await waiting[1].value }
        await rateLimiter.release(first, .answered)
        await rateLimiter.release(try await waiting[2].value, .answered)
    }

    /// A store that would be polled again only after an hour.
    private struct RarelyPolledStore: OriginLimiterStore {
        let store: LocalOriginLimiterStore

        func acquire(_ origin: Origin, load: String) async throws -> OriginAnswer {
            let answer = store.acquire(origin, load: load)
            if case .wait = answer { return .wait(.seconds(3600)) }
            return answer
        }

        func release(_ origin: Origin, load: String, of url: String, _ outcome: OriginOutcome) async throws {
            store.release(origin, load: load, of: url, outcome)
        }

        func prolong(_ loads: [Origin: Set<String>]) async throws {}
    }

    @Test func theEndOfALoadStartsTheNextOne() async throws {
        var limits = OriginLimits()
        limits.concurrency = 3
        limits.lease = .seconds(600)
        let limiter = OriginRateLimiter(shared: RarelyPolledStore(store: LocalOriginLimiterStore(limits)), limits)
        #expect(try await maximumInFlight(30, through: [limiter], expecting: 3) == 3)
    }

    @Test func openBreakerRejectsOnlyItsOwnOrigin() async throws {
        var limits = OriginLimits()
        limits.failures = 2
        limits.rest = .seconds(600)
        limits.maximumCooldown = .seconds(600)
        let rateLimiter = OriginRateLimiter(nil, limits)
        for url in ["a", "b"] { await rateLimiter.release(try await rateLimiter.acquire(origin, url), .failed) }
        let failure = await #expect(throws: JobError.self) { try await rateLimiter.acquire(origin, "u") }
        #expect(failure?.code == .originUnavailable && failure?.isRetryable == true)
        #expect(failure?.message.contains("https://img.example.org") == true)
        #expect((1...600).contains(failure?.retryAfter ?? 0))
        await rateLimiter.release(try await rateLimiter.acquire(Origin("https://other.example.org"), "u"), .answered)
    }
}
