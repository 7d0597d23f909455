import Redis
import Telemetry
import TestSupport
import Testing
import Threads

@testable import HalcyonCoordination

@Suite struct LeaseTests {
    /// What a process is told that asks for the product of `grounds`.
    private func ask(_ attempt: LeaseAttempt, _ grounds: Grounds, _ seen: Seen = .nothing) async throws -> LeaseAnswer {
        try await attempt.ask([(grounds.name, seen)])[0]
    }

    private func attempt(_ leases: Leases, _ grounds: Grounds, level: Int = 1) -> LeaseAttempt {
        leases.attempt([grounds.name], .result, Urgency(level: level))
    }

    @Test(arguments: RedisDeployment.Kind.allCases)
    func oneMakesAndTheOthersWaitUntilItIsThere(on kind: RedisDeployment.Kind) async throws {
        try await Grounds.with(kind) { grounds in
            let (one, other) = (attempt(try grounds.process(), grounds), attempt(try grounds.process(), grounds))
            let lease = try await ask(one, grounds).given()
            // Asking again changes nothing.
            #expect(try await ask(one, grounds) == .mine(lease))
            guard case .held(let holder) = try await ask(other, grounds) else {
                Issue.record("it was held")
                return
            }
            #expect(holder.owner == lease.owner && holder.fence == lease.fence)
            #expect(holder.left > .seconds(1) && holder.left <= .seconds(600))
            async let news = other.wait(for: [grounds.name])
            _ = try await grounds.redis.send(["HSET", .string(grounds.product), "fence", .integer(lease.fence)])
            await one.finish(lease, .stored)
            let heard = try await news
            #expect(heard.isEmpty || heard == [grounds.name: .stored])
            #expect(try await ask(other, grounds) == .there)
            // Of a version that is of no use somebody makes a newer one.
            let newer = try await ask(other, grounds, .version(lease.fence)).given()
            #expect(newer.fence > lease.fence)
            await one.end()
            await other.end()
        }
    }

    @Test func whoWaitsIsWokenAndToldWhatCameOfIt() async throws {
        try await Grounds.with(.server) { grounds in
            // With so long a time to the next look only a message can wake in time.
            var options = LeaseOptions()
            options.duration = .seconds(600)
            options.recheck = .seconds(600)
            let (first, second) = (try grounds.process(options), try grounds.process(options))
            try await until("both listen") {
                let channels = try await grounds.redis.send(["PUBSUB", "CHANNELS", "halcyon:process:*"])
                return channels.array?.count == 2
            }
            let (one, other) = (attempt(first, grounds), attempt(second, grounds))
            let lease = try await ask(one, grounds).given()
            _ = try await ask(other, grounds)
            await one.finish(lease, .failed("not_found: a b c"))
            #expect(try await other.wait(for: [grounds.name]) == [grounds.name: .failed("not_found: a b c")])
            await one.end()
            await other.end()
        }
    }

    @Test func aLeaseIsKeptWhileItsProcessLivesAndTakenOverSoonAfterItsDeath() async throws {
        try await Grounds.with(.server) { grounds in
            var options = Grounds.patient
            options.duration = .seconds(30)
            let (first, second) = (try grounds.process(options), try grounds.process(options))
            let (one, other) = (attempt(first, grounds), attempt(second, grounds))
            let lease = try await ask(one, grounds).given()
            // It is prolonged, and more than once: its end is moved on.
            let key = RedisArgument.string(grounds.name.lease)
            let end = try await grounds.redis.send(["PEXPIRETIME", key]).integer ?? 0
            try await until("the lease has been prolonged") {
                try await grounds.redis.send(["PEXPIRETIME", key]).integer ?? 0 > end + 5000
            }
            guard case .held = try await ask(other, grounds) else {
                Issue.record("it was kept")
                return
            }
            // Renews nothing any more, as if it were dead.
            _ = await first.keeper.close()
            var answer = try await ask(other, grounds)
            while case .held = answer {
                _ = try await other.wait(for: [grounds.name])
                answer = try await ask(other, grounds)
            }
            let newer = try answer.given()
            #expect(newer.fence > lease.fence)
            // The dead one comes back, and ends a lease that is no longer its own: nothing happens.
            await one.finish(lease, .stored)
            #expect(try await ask(other, grounds) == .mine(newer))
            await other.end()
        }
    }

    @Test func aLeaseLostWithNobodyAfterItIsTakenAgain() async throws {
        try await Grounds.with(.server) { grounds in
            var options = Grounds.patient
            // Renewed, and so seen to be lost, after a third of it.
            options.duration = .seconds(45)
            let (one, other) = (attempt(try grounds.process(options), grounds), attempt(try grounds.process(), grounds))
            let lease = try await ask(one, grounds).given()
            _ = try await grounds.redis.send(["FLUSHALL"])
            try await until("it is held again") { try await grounds.redis.send(["DBSIZE"]).integer != 0 }
            guard case .held(let holder) = try await ask(other, grounds) else {
                Issue.record("it was taken again")
                return
            }
            #expect(holder.fence == lease.fence)
            await one.end()
            await other.end()
        }
    }

    @Test func afterAPurgeALeaseIsNotTakenAgainAndWhatWasMadeIsFencedOut() async throws {
        try await Grounds.with(.server) { grounds in
            var options = LeaseOptions()
            options.duration = .milliseconds(900)
            let one = attempt(try grounds.process(options), grounds)
            let lease = try await ask(one, grounds).given()
            let script = RedisScript(
                Fencing.check
                    + "return isFencedOut(KEYS[1], KEYS[2], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[2])) and 1 or 0")
            func isFencedOut() async throws -> Bool {
                try await grounds.redis.run(
                    script, keys: [.string(grounds.name.fences), .string(grounds.product)],
                    arguments: [.string(String(grounds.name.item)), .integer(lease.fence)]
                ).integer == 1
            }
            #expect(try await !isFencedOut())
            _ = try await grounds.redis.send(["HSET", .string(grounds.name.fences), "floor", .integer(lease.fence + 1)])
            #expect(try await isFencedOut())
            _ = try await grounds.redis.send(["HDEL", .string(grounds.name.fences), "floor"])
            _ = try await grounds.redis.send([
                "HSET", .string(grounds.name.fences), "floor:\(grounds.name.item)", .integer(lease.fence + 1),
            ])
            #expect(try await isFencedOut())
            _ = try await grounds.redis.send(["UNLINK", "\(grounds.product.split(separator: "}")[0])}:lease:picture"])
            try await Task.sleep(for: .seconds(2))
            #expect(try await grounds.redis.send(["DBSIZE"]).integer == 1)
            await one.end()
        }
    }

    @Test func someOfSeveralProductsAreHeldByOthers() async throws {
        try await Grounds.with(.cluster) { grounds in
            let names = (0..<3).map { LeaseName(product: "\(grounds.product)\($0)") }
            let (first, second) = (try grounds.process(), try grounds.process())
            let one = first.attempt([names[1]], .result, Urgency(level: 1))
            let other = second.attempt(names, .result, Urgency(level: 1))
            _ = try await one.ask([(names[1], .nothing)])
            _ = try await grounds.redis.send(["HSET", .string(names[2].product), "fence", "7"])
            let answers = try await other.ask(names.map { ($0, .nothing) })
            guard case .mine(let lease) = answers[0], case .held = answers[1], case .there = answers[2] else {
                Issue.record("\(answers)")
                return
            }
            #expect(lease.name == names[0])
            // Who wants it anew does not look.
            _ = try await other.ask([(names[2], .anything)])[0].given()
            await one.end()
            await other.end()
        }
    }

    @Test func workThatIsWantedElsewhereIsKnown() async throws {
        try await Grounds.with(.server) { grounds in
            let (one, other) = (attempt(try grounds.process(), grounds), attempt(try grounds.process(), grounds))
            _ = try await ask(one, grounds)
            _ = try await ask(other, grounds)
            #expect(await one.isWantedElsewhere())
            await other.end()
            #expect(await !one.isWantedElsewhere())
            // Whoever comes now need not wait for what was given up.
            let third = attempt(try grounds.process(), grounds)
            _ = try await ask(third, grounds).given()
            await third.end()
            await one.end()
        }
    }

    @Test func whoWaitsMoreUrgentlyRaisesTheWork() async throws {
        try await Grounds.with(.server) { grounds in
            let (first, second) = (try grounds.process(), try grounds.process())
            try await until("both listen") {
                let channels = try await grounds.redis.send(["PUBSUB", "CHANNELS", "halcyon:process:*"])
                return channels.array?.count == 2
            }
            let urgency = Urgency(level: 2)
            let one = first.attempt([grounds.name], .result, urgency)
            let other = attempt(second, grounds, level: 0)
            _ = try await ask(one, grounds)
            _ = try await ask(other, grounds)
            try await until("it is raised") { urgency.level == 0 }
            await other.end()
            await one.end()
        }
    }

    @Test func withoutRedisWorkGoesOnAndLeasesComeBackByThemselves() async throws {
        let server = try await RedisServer.start()
        let port = server.port
        let grounds = try await Grounds("redis://127.0.0.1:\(port)", server)
        var options = LeaseOptions()
        options.patience = .milliseconds(700)
        let leases = try grounds.process(options)
        let one = attempt(leases, grounds)
        let lease = try await ask(one, grounds).given()
        await one.finish(lease, .givenUp)
        await server.stop()
        #expect(try await ask(one, grounds) == .without)
        #expect(leases.isWithout)
        let again = try await RedisServer.start(port: port)
        try await until("there are leases again") { !leases.isWithout }
        _ = try await ask(one, grounds).given()
        await one.end()
        await grounds.close()
        await again.stop()
    }

    @Test func aFullRedisGivesNoLeasesAndSaysSoAtOnce() async throws {
        try await Grounds.with(.server) { grounds in
            let leases = try grounds.process()
            let one = attempt(leases, grounds)
            _ = try await grounds.redis.send(["CONFIG", "SET", "maxmemory", "1"])
            #expect(try await ask(one, grounds) == .without)
            _ = try await grounds.redis.send(["CONFIG", "SET", "maxmemory", "0"])
            try await until("there are leases again") { !leases.isWithout }
            await one.end()
        }
    }
}
