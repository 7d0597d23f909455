import Concurrency
import Redis
import Telemetry
import TestSupport
import Testing

@testable import HalcyonCoordination

@Suite(.limitedParallelism) struct LeaseTests {
    /// Requests the product of `fixture`.
    private func acquire(_ attempt: LeaseSession, _ fixture: LeaseFixture, _ seen: KnownVersion = .nothing) async throws
        -> AcquireResult
    {
        try await attempt.acquire([(fixture.name, seen)])[0]
    }

    private func attempt(_ leases: Leases, _ fixture: LeaseFixture, level: Int = 1) -> LeaseSession {
        leases.attempt([fixture.name], .result, WorkPriority(level: level))
    }

    @Test(arguments: RedisDeployment.Kind.allCases)
    func othersWaitUntilTheOwnerStores(on kind: RedisDeployment.Kind) async throws {
        try await LeaseFixture.with(kind) { fixture in
            let (one, other) = (attempt(try fixture.process(), fixture), attempt(try fixture.process(), fixture))
            let lease = try await acquire(one, fixture).acquiredLease()
            // A repeated request changes nothing.
            #expect(try await acquire(one, fixture) == .acquired(lease))
            guard case .heldByOther(let holder) = try await acquire(other, fixture) else {
                Issue.record("the lease should be held by the first process")
                return
            }
            #expect(holder.owner == lease.owner && holder.fence == lease.fence)
            #expect(holder.left > .seconds(1) && holder.left <= .seconds(600))
            async let outcome = other.wait(for: [fixture.name])
            _ = try await fixture.redis.send(["HSET", .string(fixture.product), "fence", .integer(lease.fence)])
            await one.finish(lease, .stored)
            let notice = try await outcome
            #expect(notice.isEmpty || notice == [fixture.name: .stored])
            #expect(try await acquire(other, fixture) == .available)
            // A request with the stored version as the known one acquires a lease for a newer version.
            let newer = try await acquire(other, fixture, .version(lease.fence)).acquiredLease()
            #expect(newer.fence > lease.fence)
            await one.end()
            await other.end()
        }
    }

    @Test func waiterIsNotifiedOfTheOutcome() async throws {
        try await LeaseFixture.with(.server) { fixture in
            // With this recheck interval, only a notification can end the wait in time.
            var options = LeaseFixture.patient
            options.recheck = .seconds(600)
            let (first, second) = (try fixture.process(options), try fixture.process(options))
            try await fixture.waitForSubscriptions(2)
            let (one, other) = (attempt(first, fixture), attempt(second, fixture))
            let lease = try await acquire(one, fixture).acquiredLease()
            _ = try await acquire(other, fixture)
            await one.finish(lease, .failed("not_found: a b c"))
            #expect(try await other.wait(for: [fixture.name]) == [fixture.name: .failed("not_found: a b c")])
            await one.end()
            await other.end()
        }
    }

    @Test func isRenewedByItsOwnerAndTakenOverAfterACrash() async throws {
        try await LeaseFixture.with(.server) { fixture in
            var options = LeaseFixture.patient
            options.duration = .seconds(30)
            let (first, second) = (try fixture.process(options), try fixture.process(options))
            let (one, other) = (attempt(first, fixture), attempt(second, fixture))
            let lease = try await acquire(one, fixture).acquiredLease()
            // The lease is renewed more than once, which extends its expiry.
            let key = RedisArgument.string(fixture.name.lease)
            let end = try await fixture.redis.send(["PEXPIRETIME", key]).integer ?? 0
            try await until("the lease has been renewed") {
                try await fixture.redis.send(["PEXPIRETIME", key]).integer ?? 0 > end + 5000
            }
            guard case .heldByOther = try await acquire(other, fixture) else {
                Issue.record("the lease should still be held")
                return
            }
            // Stops renewals, as if the process had crashed.
            _ = await first.keeper.close()
            var answer = try await acquire(other, fixture)
            while case .heldByOther = answer {
                _ = try await other.wait(for: [fixture.name])
                answer = try await acquire(other, fixture)
            }
            let newer = try answer.acquiredLease()
            #expect(newer.fence > lease.fence)
            // A late release by the former owner has no effect.
            await one.finish(lease, .stored)
            #expect(try await acquire(other, fixture) == .acquired(newer))
            await other.end()
        }
    }

    @Test func reacquiresALeaseLostByRedis() async throws {
        try await LeaseFixture.with(.server) { fixture in
            var options = LeaseFixture.patient
            // The lease is renewed, and its loss is noticed, after a third of the duration.
            options.duration = .seconds(45)
            let (one, other) = (attempt(try fixture.process(options), fixture), attempt(try fixture.process(), fixture))
            let lease = try await acquire(one, fixture).acquiredLease()
            _ = try await fixture.redis.send(["FLUSHALL"])
            try await until("the lease is held again") { try await fixture.redis.send(["DBSIZE"]).integer != 0 }
            guard case .heldByOther(let holder) = try await acquire(other, fixture) else {
                Issue.record("the lease should have been acquired again")
                return
            }
            #expect(holder.fence == lease.fence)
            await one.end()
            await other.end()
        }
    }

    @Test func purgePreventsReacquisitionAndFencesOutResults() async throws {
        try await LeaseFixture.with(.server) { fixture in
            var options = LeaseFixture.patient
            options.duration = .milliseconds(900)
            let one = attempt(try fixture.process(options), fixture)
            let lease = try await acquire(one, fixture).acquiredLease()
            let script = RedisScript(
                FencingTokens.check
                    + "return isFencedOut(KEYS[1], KEYS[2], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[2])) and 1 or 0")
            func isFencedOut() async throws -> Bool {
                try await fixture.redis.run(
                    script, keys: [.string(fixture.name.fences), .string(fixture.product)],
                    arguments: [.string(String(fixture.name.item)), .integer(lease.fence)]
                ).integer == 1
            }
            #expect(try await !isFencedOut())
            _ = try await fixture.redis.send(["HSET", .string(fixture.name.fences), "floor", .integer(lease.fence + 1)])
            #expect(try await isFencedOut())
            _ = try await fixture.redis.send(["HDEL", .string(fixture.name.fences), "floor"])
            _ = try await fixture.redis.send([
                "HSET", .string(fixture.name.fences), "floor:\(fixture.name.item)", .integer(lease.fence + 1),
            ])
            #expect(try await isFencedOut())
            _ = try await fixture.redis.send(["UNLINK", "\(fixture.product.split(separator: "}")[0])}:lease:picture"])
            try await Task.sleep(for: .seconds(2))
            #expect(try await fixture.redis.send(["DBSIZE"]).integer == 1)
            await one.end()
        }
    }

    @Test func reportsTheStateOfEachRequestedProduct() async throws {
        try await LeaseFixture.with(.cluster) { fixture in
            let names = (0..<3).map { LeaseName(product: "\(fixture.product)\($0)") }
            let (first, second) = (try fixture.process(), try fixture.process())
            let one = first.attempt([names[1]], .result, WorkPriority(level: 1))
            let other = second.attempt(names, .result, WorkPriority(level: 1))
            _ = try await one.acquire([(names[1], .nothing)])
            _ = try await fixture.redis.send(["HSET", .string(names[2].product), "fence", "7"])
            let answers = try await other.acquire(names.map { ($0, .nothing) })
            guard case .acquired(let lease) = answers[0], case .heldByOther = answers[1], case .available = answers[2]
            else {
                Issue.record("\(answers)")
                return
            }
            #expect(lease.name == names[0])
            // A reload ignores the stored version.
            _ = try await other.acquire([(names[2], .anything)])[0].acquiredLease()
            await one.end()
            await other.end()
        }
    }

    @Test func knowsWhetherAnotherProcessWaits() async throws {
        try await LeaseFixture.with(.server) { fixture in
            let (one, other) = (attempt(try fixture.process(), fixture), attempt(try fixture.process(), fixture))
            _ = try await acquire(one, fixture)
            _ = try await acquire(other, fixture)
            #expect(await one.isWantedElsewhere())
            await other.end()
            #expect(await !one.isWantedElsewhere())
            // New requests do not wait for work that was given up.
            let third = attempt(try fixture.process(), fixture)
            _ = try await acquire(third, fixture).acquiredLease()
            await third.end()
            await one.end()
        }
    }

    @Test func urgentWaiterRaisesThePriority() async throws {
        try await LeaseFixture.with(.server) { fixture in
            let (first, second) = (try fixture.process(), try fixture.process())
            try await fixture.waitForSubscriptions(2)
            let urgency = WorkPriority(level: 2)
            let one = first.attempt([fixture.name], .result, urgency)
            let other = attempt(second, fixture, level: 0)
            _ = try await acquire(one, fixture)
            _ = try await acquire(other, fixture)
            try await until("the priority is raised") { urgency.level == 0 }
            await other.end()
            await one.end()
        }
    }

    @Test func isUnavailableWithoutRedisAndRecovers() async throws {
        let server = try await RedisServer.start()
        let port = server.port
        let fixture = try await LeaseFixture("redis://127.0.0.1:\(port)", server)
        var options = LeaseOptions()
        options.fallbackTimeout = .milliseconds(100)
        let leases = try fixture.process(options)
        let one = attempt(leases, fixture)
        try await until("the lease is acquired") {
            await one.finish(try await acquire(one, fixture).acquiredLease(), .givenUp)
            return !leases.isWithout
        }
        await server.stop()
        #expect(try await acquire(one, fixture) == .unavailable)
        #expect(leases.isWithout)
        let again = try await RedisServer.start(port: port)
        try await until("leases are available again") {
            _ = try await acquire(one, fixture).acquiredLease()
            return !leases.isWithout
        }
        await one.end()
        await fixture.close()
        await again.stop()
    }

    @Test func lostPrimaryOfAClusterConcernsOnlyItsLeases() async throws {
        try await LeaseFixture.with(.cluster) { fixture in
            var names: [Bool: LeaseName] = [:]
            for number in 0..<60 where names.count < 2 {
                let name = LeaseName(product: "halcyon:{\(number)}:picture")
                let slot = try await fixture.server.run("CLUSTER", "KEYSLOT", name.product).prefix { $0.isNumber }
                // The first of three servers has the first third of the slots.
                names[(Int(slot) ?? 0) < 16_384 / 3] = name
            }
            let (lost, other) = (try #require(names[true]), try #require(names[false]))
            var options = LeaseFixture.patient
            options.fallbackTimeout = .milliseconds(100)
            let leases = try fixture.process(options)
            let one = leases.attempt([lost, other], .result, WorkPriority(level: 1))
            // Connects to both servers.
            for name in [lost, other] {
                try await until("the lease is acquired") {
                    let answer = try await one.acquire([(name, .nothing)])[0]
                    await one.finish(try answer.acquiredLease(), .givenUp)
                    return true
                }
            }
            try await until("leases are available") { !leases.isWithout }
            await fixture.server.stop()
            let answers = try await one.acquire([(lost, .nothing)])
            #expect(answers == [.unavailable])
            let lease = try await one.acquire([(other, .nothing)])[0].acquiredLease()
            let isWithout = leases.isWithout
            #expect(lease.name == other && isWithout)
            await one.end()
        }
    }

    @Test func isUnavailableWhenRedisIsFull() async throws {
        try await LeaseFixture.with(.server) { fixture in
            let leases = try fixture.process()
            let one = attempt(leases, fixture)
            _ = try await fixture.redis.send(["CONFIG", "SET", "maxmemory", "1"])
            #expect(try await acquire(one, fixture) == .unavailable)
            _ = try await fixture.redis.send(["CONFIG", "SET", "maxmemory", "0"])
            try await until("leases are available again") { !leases.isWithout }
            await one.end()
        }
    }
}
