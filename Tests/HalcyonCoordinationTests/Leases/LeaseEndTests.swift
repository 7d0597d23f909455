import Redis
import TestSupport
import Testing
import Threads

@testable import HalcyonCoordination

/// How leases end, where that is not plain: what the model of the protocol found (docs/coalescing.md).
@Suite struct LeaseEndTests {
    private func book(_ grounds: Grounds, _ process: String) -> LeaseBook {
        LeaseBook(redis: grounds.redis, process: process, duration: .seconds(600))
    }

    private func lease(_ answers: [LeaseAnswer]) throws -> [Lease] { try answers.map { try $0.given() } }

    @Test func aRenewalThatComesAfterTheEndDoesNotTakeTheLeaseAgain() async throws {
        try await Grounds.with { grounds in
            let (one, other) = (book(grounds, "one"), book(grounds, "other"))
            let first = try lease(try await one.enter([(grounds.name, .nothing)], attempt: "a", level: 1))[0]
            try await one.release(first, .givenUp)
            #expect(try await one.renew([(first, 1)]) == [false])
            let second = try lease(try await other.enter([(grounds.name, .nothing)], attempt: "a", level: 1))[0]
            #expect(try await !other.areWanted([second]))
            #expect(try await other.renew([(second, 1)]) == [false])
            #expect(try await grounds.redis.send(["EXISTS", .string(grounds.name.lease)]).integer == 0)
        }
    }

    @Test func anAttemptGivesUpAllItsProductsOrNone() async throws {
        try await Grounds.with { grounds in
            let names = (0..<2).map { LeaseName(product: "\(grounds.product)\($0)") }
            let (one, other) = (book(grounds, "one"), book(grounds, "other"))
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

    @Test func twoAttemptsOfOneProcessWaitEachForItself() async throws {
        try await Grounds.with { grounds in
            let (one, other) = (book(grounds, "one"), book(grounds, "other"))
            let held = try lease(try await one.enter([(grounds.name, .nothing)], attempt: "a", level: 1))
            for attempt in ["a", "b"] {
                _ = try await other.enter([(grounds.name, .nothing)], attempt: attempt, level: 1)
            }
            try await other.leave(grounds.name, attempt: "a")
            #expect(try await one.areWanted(held))
            try await other.leave(grounds.name, attempt: "b")
            #expect(try await !one.areWanted(held))
        }
    }

    @Test func aLeaseGivenToWhoIsGoneIsNotKept() async throws {
        try await Grounds.with { grounds in
            let (first, second) = (try grounds.process(), try grounds.process())
            let one = first.attempt([grounds.name], .result, Urgency(level: 1))
            let other = second.attempt([grounds.name], .result, Urgency(level: 1))
            // Both are connected.
            await one.finish(try lease(try await one.ask([(grounds.name, .nothing)]))[0], .givenUp)
            await other.finish(try lease(try await other.ask([(grounds.name, .nothing)]))[0], .givenUp)
            _ = try await grounds.server.tell("CLIENT", "PAUSE", "100000", "WRITE")
            let asking = Task { try await one.ask([(grounds.name, .nothing)]) }
            try await until("the question has come") {
                try await grounds.server.tell("CLIENT", "LIST").contains("cmd=evalsha")
            }
            asking.cancel()
            await #expect(throws: CancellationError.self) { try await asking.value }
            _ = try await grounds.server.tell("CLIENT", "UNPAUSE")
            await one.end()
            _ = try lease(try await other.ask([(grounds.name, .nothing)]))
            await other.end()
        }
    }

    @Test func whoComesAfterAPurgeDoesNotWaitForOlderWork() async throws {
        try await Grounds.with { grounds in
            let (one, other) = (book(grounds, "one"), book(grounds, "other"))
            let old = try lease(try await one.enter([(grounds.name, .nothing)], attempt: "a", level: 1))[0]
            let purge = RedisScript(Fencing.purge + "purge(KEYS[1], ARGV[1])")
            _ = try await grounds.redis.run(
                purge, keys: [.string(grounds.name.fences)], arguments: [.string(String(grounds.name.item))])
            let new = try lease(try await other.enter([(grounds.name, .nothing)], attempt: "a", level: 1))[0]
            #expect(new.fence > old.fence)
            #expect(try await one.renew([(old, 1)]) == [false])
        }
    }

    @Test func theFenceIsAboveWhatIsThereThoughTheClockWasSetBack() async throws {
        try await Grounds.with { grounds in
            let ahead = Int.max >> 11
            _ = try await grounds.redis.send(["HSET", .string(grounds.product), "fence", .integer(ahead)])
            let mine = try lease(
                try await book(grounds, "one").enter([(grounds.name, .version(ahead))], attempt: "a", level: 1))[0]
            #expect(mine.fence > ahead)
        }
    }

    @Test func whatIsToBeMadeAnewIsMadeOnceForAllWhoWaitForIt() async throws {
        try await Grounds.with { grounds in
            let attempts = try (0..<3).map { _ in
                try grounds.process().attempt([grounds.name], .result, Urgency(level: 1))
            }
            let old = try lease(try await attempts[0].ask([(grounds.name, .anything)]))[0]
            for attempt in attempts.dropFirst() { _ = try await attempt.ask([(grounds.name, .anything)]) }
            _ = try await grounds.redis.send(["HSET", .string(grounds.product), "fence", .integer(old.fence)])
            await attempts[0].finish(old, .stored)
            // That one was begun before the others asked.
            let new = try lease(try await attempts[1].ask([(grounds.name, .anything)]))[0]
            _ = try await grounds.redis.send(["HSET", .string(grounds.product), "fence", .integer(new.fence)])
            await attempts[1].finish(new, .stored)
            #expect(try await attempts[2].ask([(grounds.name, .anything)]) == [.there])
            for attempt in attempts { await attempt.end() }
        }
    }
}
