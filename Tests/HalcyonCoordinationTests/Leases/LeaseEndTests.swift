import Concurrency
import Redis
import TestSupport
import Testing

@testable import HalcyonCoordination

/// Edge cases of ending leases that the model of the protocol found (docs/coalescing.md).
@Suite(.limitedParallelism) struct LeaseEndTests {
    private func store(_ fixture: LeaseFixture, _ process: String) -> LeaseStore {
        LeaseStore(redis: fixture.redis, process: process, duration: .seconds(600))
    }

    private func lease(_ answers: [AcquireResult]) throws -> [Lease] { try answers.map { try $0.acquiredLease() } }

    @Test func lateRenewalDoesNotReacquireTheLease() async throws {
        try await LeaseFixture.with { fixture in
            let (one, other) = (store(fixture, "one"), store(fixture, "other"))
            let first = try lease(try await one.enter([(fixture.name, .nothing)], attempt: "a", level: 1))[0]
            try await one.release(first, .givenUp)
            #expect(try await one.renew([(first, 1)]) == [false])
            let second = try lease(try await other.enter([(fixture.name, .nothing)], attempt: "a", level: 1))[0]
            #expect(try await !other.areWanted([second]))
            #expect(try await other.renew([(second, 1)]) == [false])
            #expect(try await fixture.redis.send(["EXISTS", .string(fixture.name.lease)]).integer == 0)
        }
    }

    @Test func attemptAbandonsAllItsProductsOrNone() async throws {
        try await LeaseFixture.with { fixture in
            let names = (0..<2).map { LeaseName(product: "\(fixture.product)\($0)") }
            let (one, other) = (store(fixture, "one"), store(fixture, "other"))
            let leases = try lease(try await one.enter(names.map { ($0, .nothing) }, attempt: "a", level: 1))
            #expect(leases[0].fence != leases[1].fence)
            _ = try await other.enter([(names[1], .nothing)], attempt: "a", level: 1)
            #expect(try await one.areWanted(leases))
            #expect(try await one.renew(leases.map { ($0, 1) }) == [true, true])
            try await other.leave(names[1], attempt: "a")
            #expect(try await !one.areWanted(leases))
            #expect(try await one.renew(leases.map { ($0, 1) }) == [false, false])
        }
    }

    @Test func attemptsOfOneProcessWaitSeparately() async throws {
        try await LeaseFixture.with { fixture in
            let (one, other) = (store(fixture, "one"), store(fixture, "other"))
            let held = try lease(try await one.enter([(fixture.name, .nothing)], attempt: "a", level: 1))
            for attempt in ["a", "b"] {
                _ = try await other.enter([(fixture.name, .nothing)], attempt: attempt, level: 1)
            }
            try await other.leave(fixture.name, attempt: "a")
            #expect(try await one.areWanted(held))
            try await other.leave(fixture.name, attempt: "b")
            #expect(try await !one.areWanted(held))
        }
    }

    @Test func leaseGrantedToACancelledAttemptIsReleased() async throws {
        try await LeaseFixture.with { fixture in
            let (first, second) = (try fixture.process(), try fixture.process())
            let one = first.attempt([fixture.name], .result, WorkPriority(level: 1))
            let other = second.attempt([fixture.name], .result, WorkPriority(level: 1))
            // Connects both processes.
            await one.finish(try lease(try await one.acquire([(fixture.name, .nothing)]))[0], .givenUp)
            await other.finish(try lease(try await other.acquire([(fixture.name, .nothing)]))[0], .givenUp)
            _ = try await fixture.server.run("CLIENT", "PAUSE", "100000", "WRITE")
            let asking = Task { try await one.acquire([(fixture.name, .nothing)]) }
            try await until("the request has arrived") {
                try await fixture.server.run("INFO", "clients").contains("blocked_clients:1")
            }
            asking.cancel()
            await #expect(throws: CancellationError.self) { try await asking.value }
            _ = try await fixture.server.run("CLIENT", "UNPAUSE")
            await one.end()
            _ = try lease(try await other.acquire([(fixture.name, .nothing)]))
            await other.end()
        }
    }

    /// Runs `body` with the session of a process, its client, and the session of another process. The first process
    /// does not retry requests.
    private func withImpatientProcess(
        _ fixture: LeaseFixture, _ names: [LeaseName],
        _ body: (_ one: LeaseSession, _ redis: RedisClient, _ other: LeaseSession) async throws -> Void
    ) async throws {
        let redis = RedisClient(try RedisEndpoint(fixture.server.url), settings: .patient())
        var options = LeaseFixture.patient
        options.fallbackTimeout = .zero
        let (first, second) = (try fixture.process(options, over: redis), try fixture.process())
        let one = first.attempt(names, .result, WorkPriority(level: 1))
        let other = second.attempt(names, .result, WorkPriority(level: 1))
        // Loads the script.
        await other.finish(try lease(try await other.acquire([(names[0], .nothing)]))[0], .givenUp)
        try await body(one, redis, other)
        await other.end()
    }

    /// Requests a lease that is granted, and breaks the connection of `redis` before the reply.
    private func acquireWithoutReply(
        _ name: LeaseName, _ session: LeaseSession, over redis: RedisClient, _ fixture: LeaseFixture
    ) async throws {
        let id = try #require(try await redis.send("CLIENT", "ID").integer)
        _ = try await redis.send("PING")
        // The next command has no reply.
        let skipping = Task { try await redis.send("CLIENT", "REPLY", "SKIP") }
        try await until("the reply will be skipped") {
            let client = try await fixture.redis.send("CLIENT", "LIST", "ID", .integer(id)).string
            return client?.contains("cmd=client") == true
        }
        let asking = Task { try await session.acquire([(name, .nothing)]) }
        try await until("the lease is granted") {
            try await fixture.redis.send("EXISTS", .string(name.lease)).integer == 1
        }
        _ = try await fixture.redis.send("CLIENT", "KILL", "ID", .integer(id))
        #expect(try await asking.value == [.unavailable])
        _ = await skipping.result
    }

    /// During an outage, a lease may be granted although its request has no reply.
    @Test func leaseGrantedWithoutAReplyIsReleased() async throws {
        try await LeaseFixture.with { fixture in
            try await withImpatientProcess(fixture, [fixture.name]) { one, redis, other in
                try await acquireWithoutReply(fixture.name, one, over: redis, fixture)
                await one.end()
                let next = try lease(try await other.acquire([(fixture.name, .nothing)]))[0]
                #expect(next.deaths == 0)
            }
        }
    }

    /// A session that asks again for a lease that it released takes another name.
    @Test func leaseGrantedWithoutAReplyIsReleasedUnderItsFormerName() async throws {
        try await LeaseFixture.with { fixture in
            let names = (0..<2).map { LeaseName(product: "\(fixture.product)\($0)") }
            try await withImpatientProcess(fixture, names) { one, redis, other in
                await one.finish(try lease(try await one.acquire([(names[0], .nothing)]))[0], .givenUp)
                try await acquireWithoutReply(names[1], one, over: redis, fixture)
                _ = try await one.acquire([(names[0], .nothing)])
                await one.end()
                let next = try lease(try await other.acquire([(names[1], .nothing)]))[0]
                #expect(next.deaths == 0)
            }
        }
    }

    @Test func requestAfterAPurgeDoesNotWaitForOlderWork() async throws {
        try await LeaseFixture.with { fixture in
            let (one, other) = (store(fixture, "one"), store(fixture, "other"))
            let old = try lease(try await one.enter([(fixture.name, .nothing)], attempt: "a", level: 1))[0]
            let purge = RedisScript(FencingTokens.purge + "purge(KEYS[1], ARGV[1])")
            _ = try await fixture.redis.run(
                purge, keys: [.string(fixture.name.fences)], arguments: [.string(String(fixture.name.item))])
            let new = try lease(try await other.enter([(fixture.name, .nothing)], attempt: "a", level: 1))[0]
            #expect(new.fence > old.fence)
            #expect(try await one.renew([(old, 1)]) == [false])
        }
    }

    @Test func fenceExceedsTheStoredOneAfterAClockReset() async throws {
        try await LeaseFixture.with { fixture in
            let ahead = Int.max >> 11
            _ = try await fixture.redis.send(["HSET", .string(fixture.product), "fence", .integer(ahead)])
            let granted = try lease(
                try await store(fixture, "one").enter([(fixture.name, .version(ahead))], attempt: "a", level: 1))[0]
            #expect(granted.fence > ahead)
        }
    }

    @Test func reloadIsProducedOnceForAllWaiters() async throws {
        try await LeaseFixture.with { fixture in
            let attempts = try (0..<3).map { _ in
                try fixture.process().attempt([fixture.name], .result, WorkPriority(level: 1))
            }
            let old = try lease(try await attempts[0].acquire([(fixture.name, .anything)]))[0]
            for attempt in attempts.dropFirst() { _ = try await attempt.acquire([(fixture.name, .anything)]) }
            _ = try await fixture.redis.send(["HSET", .string(fixture.product), "fence", .integer(old.fence)])
            await attempts[0].finish(old, .stored)
            // That work started before the requests of the others.
            let new = try lease(try await attempts[1].acquire([(fixture.name, .anything)]))[0]
            _ = try await fixture.redis.send(["HSET", .string(fixture.product), "fence", .integer(new.fence)])
            await attempts[1].finish(new, .stored)
            #expect(try await attempts[2].acquire([(fixture.name, .anything)]) == [.available])
            for attempt in attempts { await attempt.end() }
        }
    }
}
