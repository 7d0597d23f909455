import Redis
import TestSupport
import Testing

@testable import HalcyonSources

/// Requirements of both limiter stores.
@Suite(.limitedParallelism) struct OriginLimiterStoreTests {
    enum Kind: CaseIterable { case redis, cluster, local }

    let origin = Origin("https://img.example.org")

    /// Runs `body` with two stores of this kind that share their state, like those of two workers.
    static func with(
        _ kind: Kind, _ change: (inout OriginLimits) -> Void,
        _ body: (any OriginLimiterStore, any OriginLimiterStore) async throws -> Void
    ) async throws {
        var limits = OriginLimits()
        // Longer than any machine stalls.
        (limits.lease, limits.window) = (.seconds(600), .seconds(600))
        change(&limits)
        guard kind != .local else {
            let store = LocalOriginLimiterStore(limits)
            return try await body(store, store)
        }
        let deployment = try await RedisDeployment.start(kind == .cluster ? .cluster : .server)
        let endpoint = try RedisEndpoint(deployment.url)
        let clients = (0..<2).map { _ in RedisClient(endpoint) }
        let stores = clients.map { RedisOriginLimiterStore($0, limits) }
        let result: Result<Void, any Error>
        do { result = .success(try await body(stores[0], stores[1])) } catch { result = .failure(error) }
        for client in clients { await client.close() }
        await deployment.stop()
        try result.get()
    }

    private func isWait(_ answer: OriginAnswer) -> Bool { if case .wait = answer { true } else { false } }
    private func isResting(_ answer: OriginAnswer) -> Bool { if case .resting = answer { true } else { false } }

    @Test(arguments: Kind.allCases) func limitsConcurrencyAcrossWorkers(_ kind: Kind) async throws {
        try await Self.with(kind) {
            $0.concurrency = 3
        } _: { one, two async throws in
            for load in ["a", "b"] { #expect(try await one.acquire(origin, load: load) == .go) }
            #expect(try await two.acquire(origin, load: "c") == .go)
            #expect(isWait(try await one.acquire(origin, load: "d")))
            #expect(isWait(try await two.acquire(origin, load: "e")))
            // Other origins have their own limit.
            #expect(try await two.acquire(Origin("http://img.example.org"), load: "e") == .go)
            try await two.release(origin, load: "a", of: "u", .answered)
            #expect(try await one.acquire(origin, load: "d") == .go)
            #expect(isWait(try await two.acquire(origin, load: "e")))
        }
    }

    @Test(arguments: Kind.allCases) func leaseExpiresWithoutRenewal(_ kind: Kind) async throws {
        try await Self.with(kind) {
            $0.concurrency = 1
            $0.lease = .milliseconds(300)
        } _: { one, two async throws in
            #expect(try await one.acquire(origin, load: "a") == .go)
            try await until("the lease has expired") { try await two.acquire(origin, load: "b") == .go }
            // The expired lease of the first load cannot be renewed any more.
            try await two.prolong([origin: ["a"]])
            try await two.release(origin, load: "b", of: "u", .answered)
            #expect(try await one.acquire(origin, load: "c") == .go)
        }
    }

    @Test(.extended, arguments: Kind.allCases) func renewedLeaseKeepsItsPermit(_ kind: Kind) async throws {
        let origin = origin
        try await Self.with(kind) {
            $0.concurrency = 1
            $0.lease = .seconds(2)
        } _: { one, two async throws in
            // Starts over if the machine stalls for too long.
            try await until("the load has kept its permit for longer than its lease", within: .seconds(600)) {
                for load in ["a", "b"] { try await two.release(origin, load: load, of: "u", .answered) }
                let start = ContinuousClock.now
                guard try await one.acquire(origin, load: "a") == .go else { return false }
                while start.duration(to: .now) < .seconds(3) {
                    try await Task.sleep(for: .milliseconds(100))
                    try await one.prolong([origin: ["a"], Origin("http://img.example.org"): ["b"]])
                    if try await two.acquire(origin, load: "b") == .go { return false }
                }
                return true
            }
        }
    }

    @Test(arguments: Kind.allCases) func limitsRateAfterBurst(_ kind: Kind) async throws {
        try await Self.with(kind) {
            $0.rate = 4
            $0.burst = 3
        } _: { one, two async throws in
            let start = ContinuousClock.now
            var begun = 0
            while begun < 9 {
                switch try await (begun % 2 == 0 ? one : two).acquire(origin, load: "\(begun)") {
                case .go: begun += 1
                case .wait(let time):
                    #expect(begun >= 3 && time > .zero && time <= .milliseconds(251))
                    try await Task.sleep(for: time)
                case .resting: Issue.record("the circuit breaker is open")
                }
            }
            // Three at once, and six at four per second.
            #expect(start.duration(to: .now) >= .milliseconds(1400))
        }
    }

    @Test(arguments: Kind.allCases) func loadsThatDidNotStartLeaveTheirTokens(_ kind: Kind) async throws {
        try await Self.with(kind) {
            $0.rate = 0.001
            $0.burst = 2
        } _: { one, two async throws in
            for number in 0..<10 {
                #expect(try await one.acquire(origin, load: "\(number)") == .go)
                try await two.release(origin, load: "\(number)", of: "u", .notStarted)
            }
            // There are no more tokens than before.
            for load in ["a", "b"] { #expect(try await one.acquire(origin, load: load) == .go) }
            #expect(isWait(try await two.acquire(origin, load: "c")))
        }
    }

    @Test(arguments: Kind.allCases) func failuresOpenBreaker(_ kind: Kind) async throws {
        try await Self.with(kind) {
            $0.failures = 3
            ($0.rest, $0.maximumCooldown) = (.seconds(600), .seconds(600))
        } _: { one, two async throws in
            func load(_ name: String, _ outcome: OriginOutcome) async throws {
                #expect(try await one.acquire(origin, load: name) == .go)
                try await two.release(origin, load: name, of: name, outcome)
            }
            // Of the last six loads only two failed; unknown outcomes do not count.
            for (name, outcome) in [
                ("a", OriginOutcome.failed), ("b", .answered), ("c", .answered), ("d", .answered), ("e", .answered),
                ("f", .answered), ("g", .failed), ("h", .unknown), ("i", .failed),
            ] {
                try await load(name, outcome)
            }
            #expect(try await one.acquire(origin, load: "late") == .go)
            try await load("j", .failed)
            #expect(isResting(try await one.acquire(origin, load: "b")))
            #expect(isResting(try await two.acquire(origin, load: "b")))
            // Loads that began before the breaker opened do not change it.
            try await one.release(origin, load: "late", of: "late", .failed)
            #expect(isResting(try await two.acquire(origin, load: "b")))
        }
    }

    @Test(arguments: Kind.allCases) func breakerIsOpenUntilAProbeSucceeds(_ kind: Kind) async throws {
        try await Self.with(kind) {
            $0.failures = 3
            $0.rest = .milliseconds(100)
        } _: { one, two async throws in
            for name in ["a", "b", "c"] { #expect(try await one.acquire(origin, load: name) == .go) }
            for name in ["a", "b", "c"] { try await two.release(origin, load: name, of: name, .failed) }
            try await until("the cooldown is over") { try await two.acquire(origin, load: "probe") == .go }
            // One probe is let through, and the other loads wait for its outcome.
            #expect(isResting(try await one.acquire(origin, load: "d")))
            // The first cooldown may be over before a busy machine asks. Then the next probe fails, too.
            try await until("a failed probe starts another cooldown") {
                try await two.release(origin, load: "probe", of: "probe", .failed)
                guard case .resting(let left) = try await one.acquire(origin, load: "probe") else { return false }
                return left < .seconds(600)
            }
            try await until("the cooldown is over") { try await two.acquire(origin, load: "probe") == .go }
            try await two.release(origin, load: "probe", of: "probe", .answered)
            for name in ["x", "y", "z"] { #expect(try await one.acquire(origin, load: name) == .go) }
        }
    }

    @Test(arguments: Kind.allCases) func failuresOfTwoURLsDoNotOpenBreaker(_ kind: Kind) async throws {
        try await Self.with(kind) {
            $0.failures = 3
        } _: { one, two async throws in
            for name in 0..<10 {
                #expect(try await one.acquire(origin, load: "bad\(name)") == .go)
                try await two.release(origin, load: "bad\(name)", of: name % 2 == 0 ? "a" : "b", .failed)
            }
            #expect(try await two.acquire(origin, load: "good") == .go)
        }
    }

    @Test(arguments: Kind.allCases) func failuresOutsideWindowDoNotOpenBreaker(_ kind: Kind) async throws {
        try await Self.with(kind) {
            ($0.failures, $0.failingURLs) = (2, 1)
            $0.window = .milliseconds(1)
        } _: { one, two async throws in
            for name in ["a", "b", "c"] {
                #expect(try await one.acquire(origin, load: name) == .go)
                try await two.release(origin, load: name, of: "u", .failed)
                try await Task.sleep(for: .milliseconds(5))
            }
            #expect(try await two.acquire(origin, load: "good") == .go)
        }
    }

    @Test(arguments: Kind.allCases) func abandonedProbeAllowsAnother(_ kind: Kind) async throws {
        try await Self.with(kind) {
            $0.failures = 1
            $0.rest = .milliseconds(50)
        } _: { one, two async throws in
            #expect(try await one.acquire(origin, load: "a") == .go)
            try await one.release(origin, load: "a", of: "u", .failed)
            try await until("the cooldown is over") { try await two.acquire(origin, load: "probe") == .go }
            try await two.release(origin, load: "probe", of: "u", .unknown)
            #expect(try await one.acquire(origin, load: "again") == .go)
        }
    }

    @Test func cooldownsGrowUpToTheMaximum() {
        var limits = OriginLimits()
        (limits.failures, limits.rest, limits.maximumCooldown) = (1, .seconds(5), .seconds(30))
        var now = ContinuousClock.now
        var state = OriginCircuitBreaker(limits, at: now)
        for expected in [5, 10, 20, 30, 30] {
            #expect(state.acquire("a", at: now) == .go)
            state.release("a", of: "u", .failed, at: now)
            #expect(state.acquire("b", at: now) == .resting(.seconds(expected)))
            now += .seconds(expected)
        }
        #expect(state.acquire("a", at: now) == .go)
        state.release("a", of: "u", .answered, at: now)
        #expect(state.isIdle(at: now))
    }
}
