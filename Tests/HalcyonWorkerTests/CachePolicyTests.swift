import Concurrency
import Foundation
import HalcyonWorker
import Redis
import TestSupport
import Testing

/// Cache options, lifetimes and tenants of jobs, with a complete worker.
@Suite(.limitedParallelism) struct CachePolicyTests {
    /// Runs `body` beside a worker and an origin that serves a photograph. `headers` returns the value of Cache-Control
    /// for each request, numbered from 0.
    static func withOrigin(
        _ headers: @escaping @Sendable (Int) -> String = { _ in "max-age=600" },
        _ change: (inout WorkerOptions) -> Void = { _ in },
        _ body: (WorkerFixture, RawOrigin) async throws -> Void
    ) async throws {
        let photograph = try SampleImages.bytes()
        let counter = Counter()
        let origin = RawOrigin { _ in
            RawOrigin.Step.response(photograph, ["Cache-Control: \(headers(counter.next()))"])
        }
        try await WorkerFixture.with { cluster in
            try await cluster.withWorker(change) { try await body(cluster, origin) }
        }
        try await origin.stop()
    }

    static func job(_ id: String, _ origin: RawOrigin, _ members: String = "", path: String = "/a") -> String {
        #"{"id":"\#(id)","source":"\#(origin.url(path))","width":64,"height":64\#(members.isEmpty ? "" : ",")\#(members)}"#
    }

    @Test func disabledCachesAreNeitherReadNorWritten() async throws {
        try await Self.withOrigin { cluster, origin in
            try await cluster.submit(Self.job("kept", origin))
            let kept = try await cluster.events.terminal(of: "kept")
            let moment = try await cluster.client.send("HGET", .string(kept.key), "storedAt").string
            try await cluster.submit(Self.job("past", origin, #""cache":{"memory":false,"source":false},"maxAge":900"#))
            let past = try await cluster.events.terminal(of: "past")
            #expect(past.origin == "network" && past.variant["data"] != nil && past.data["expiresAt"] == nil)
            #expect(origin.requests.count == 2)
            #expect(try await cluster.client.send("HGET", .string(kept.key), "storedAt").string == moment)
        }
    }

    @Test func handsOverLargeResultWithoutResultCache() async throws {
        try await Self.withOrigin({ _ in "max-age=600" }, { $0.results.inlineLimit = 100 }) { cluster, origin in
            try await cluster.submit(Self.job("a", origin, #""cache":{"memory":false,"source":false}"#))
            let ready = try await cluster.events.terminal(of: "a")
            #expect(ready.key.contains(":handoff:"))
            #expect(try await cluster.client.send("HSTRLEN", .string(ready.key), "body").integer ?? 0 > 100)
            #expect(try await cluster.storedKeys() == [ready.key])
        }
    }

    @Test func reloadFetchesAgainAndStores() async throws {
        try await Self.withOrigin({ $0 == 0 ? "max-age=600" : "max-age=60" }) { cluster, origin in
            try await cluster.submit(Self.job("first", origin))
            let key = try await cluster.events.terminal(of: "first").key
            let before = try #require(try await cluster.client.send("HGET", .string(key), "storedAt").string)
            try await cluster.submit(Self.job("again", origin, #""cache":{"reload":true}"#))
            let again = try await cluster.events.terminal(of: "again")
            #expect(again.origin == "network" && origin.requests.count == 2)
            #expect(try await cluster.client.send("HGET", .string(key), "storedAt").string != before)
            // The Cache-Control of the latest response applies.
            #expect(try await cluster.client.send("PTTL", .string(key)).integer ?? 0 <= 60_000)
        }
    }

    @Test(arguments: [(#""maxAge":0"#, false), (#""maxAge":700"#, true)])
    func noStoreDeletesResultsStoredByResponseHeaders(first: String, stays: Bool) async throws {
        try await Self.withOrigin({ $0 == 0 ? "max-age=600" : "no-store" }) { cluster, origin in
            try await cluster.submit(Self.job("first", origin, first))
            let key = try await cluster.events.terminal(of: "first").key
            try await cluster.submit(Self.job("never", origin, #""cache":{"reload":true},"maxAge":-1"#))
            #expect(try await cluster.events.terminal(of: "never").variant["data"] != nil)
            #expect(try await cluster.client.send("EXISTS", .string(key)).integer == 1)
            try await cluster.submit(Self.job("again", origin, #""cache":{"reload":true}"#))
            #expect(try await cluster.events.terminal(of: "again").variant["data"] != nil)
            #expect(try await cluster.client.send("EXISTS", .string(key)).integer == (stays ? 1 : 0))
        }
    }

    @Test func onlyIfCachedFetchesNothing() async throws {
        try await Self.withOrigin({ _ in "no-store" }) { cluster, origin in
            let members = #""cache":{"onlyIfCached":true}"#
            try await cluster.submit(Self.job("miss", origin, members))
            let miss = try await cluster.events.terminal(of: "miss")
            #expect(miss.kind == "failed" && miss.code == "not_found" && miss.message.contains("cache.onlyIfCached"))
            #expect(miss.data["retryable"] as? Bool == false)
            try await cluster.submit(Self.job("made", origin, #""maxAge":600"#))
            _ = try await cluster.events.terminal(of: "made")
            try await cluster.submit(Self.job("hit", origin, members))
            #expect(try await cluster.events.terminal(of: "hit").origin == "memory")
            // One stored variant out of two is a miss.
            try await cluster.submit(Self.job("some", origin, members + #","variants":[{},{"width":32}]"#))
            #expect(try await cluster.events.terminal(of: "some").code == "not_found")
            #expect(origin.requests.count == 1)
            #expect(cluster.events.all.filter { $0.kind == "started" }.map(\.jobID) == ["made"])
            // Without Redis it is unknown whether the result is cached, so the error is retryable.
            cluster.redis.process.send(SIGKILL)
            await cluster.redis.process.exit()
            try await cluster.submit(Self.job("away", origin, members))
            let away = try await cluster.events.terminal(of: "away")
            #expect(away.code == "internal" && away.data["retryable"] as? Bool == true)
            #expect(origin.requests.count == 1)
        }
    }

    @Test func tenantsShareNeitherResultsNorBudgets() async throws {
        try await Self.withOrigin({ _ in "max-age=600" }, { $0.results.budget.count = 2 }) { cluster, origin in
            var keys: [String] = []
            for (id, members) in [("plain", ""), ("a", #""tenant":"a""#), ("b", #""tenant":"b""#)] {
                try await cluster.submit(Self.job(id, origin, members))
                let ready = try await cluster.events.terminal(of: id)
                #expect(ready.origin != "memory")
                keys.append(ready.key)
            }
            #expect(Set(keys).count == 3)
            // Each tenant has its own budget.
            for path in ["/2", "/3"] {
                try await cluster.submit(Self.job("a\(path)", origin, #""tenant":"a""#, path: path))
                _ = try await cluster.events.terminal(of: "a\(path)")
            }
            var exists: [Int?] = []
            for key in keys { exists.append(try await cluster.client.send("EXISTS", .string(key)).integer) }
            #expect(exists == [1, 0, 1])
        }
    }

    @Test func cacheHitWithLongerMaxAgeExtendsTTL() async throws {
        try await Self.withOrigin { cluster, origin in
            try await cluster.submit(Self.job("first", origin, #""maxAge":60"#))
            let key = try await cluster.events.terminal(of: "first").key
            let stored = try #require(try await cluster.client.send("HGET", .string(key), "storedAt").string)
            try await cluster.submit(Self.job("longer", origin, #""maxAge":900"#))
            let longer = try await cluster.events.terminal(of: "longer")
            #expect(longer.origin == "memory")
            let expiry = try #require(try await cluster.client.send("PEXPIRETIME", .string(key)).integer)
            #expect(Double(expiry) == Double(stored)!.rounded(.down) + 900_000)
            let expiresAt = try #require(longer.data["expiresAt"] as? String)
            let format = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
            #expect(abs(try format.parse(expiresAt).timeIntervalSince1970 * 1000 - Double(expiry)) < 2)
            // Several variants, one of which is new.
            try await cluster.submit(Self.job("several", origin, #""maxAge":1800,"variants":[{},{"width":32},{}]"#))
            #expect(try await cluster.events.terminal(of: "several").variants.count == 3)
            let end = try await cluster.client.send("PEXPIRETIME", .string(key)).integer
            #expect(end.map { Double($0) } == Double(stored)!.rounded(.down) + 1_800_000)
        }
    }

    @Test func jitterShortensOnlyDefaultLifetimes() async throws {
        try await Self.withOrigin(
            { _ in "private" },
            {
                $0.results.defaultLifetime = 1000
                $0.results.jitter = 0.5
            }
        ) { cluster, origin in
            var lifetimes: Set<Int> = []
            for number in 0..<16 {
                let own = number >= 12
                try await cluster.submit(
                    Self.job("\(number)", origin, own ? #""maxAge":1000"# : "", path: "/\(number)"))
                let key = try await cluster.events.terminal(of: "\(number)").key
                let fields = try await cluster.client.send("HMGET", .string(key), "expiresAt", "storedAt").array ?? []
                let moments = fields.compactMap { $0.string.flatMap(Double.init) }
                let lifetime = moments[0] - moments[1].rounded(.down)
                #expect(own ? lifetime == 1_000_000 : (380_000...1_000_000).contains(lifetime))
                if !own { lifetimes.insert(Int(lifetime)) }
            }
            #expect(lifetimes.count > 6)
        }
    }

    @Test func resultLargerThanTheBudgetIsSentInline() async throws {
        try await Self.withOrigin({ _ in "max-age=600" }, { $0.results.budget.pixels = 4000 }) { cluster, origin in
            try await cluster.submit(Self.job("large", origin))
            let large = try await cluster.events.terminal(of: "large")
            #expect(large.kind == "ready" && large.variant["data"] != nil && large.data["expiresAt"] == nil)
            #expect(try await cluster.client.send("EXISTS", .string(large.key)).integer == 0)
            try await cluster.submit(
                Self.job("small", origin, #""screenScale":1,"variants":[{"width":32,"height":32}]"#))
            #expect(try await cluster.events.terminal(of: "small").data["expiresAt"] != nil)
        }
    }

    @Test func cacheHitsUpdateLRUOrder() async throws {
        try await Self.withOrigin({ _ in "max-age=600" }, { $0.results.budget.count = 2 }) { cluster, origin in
            var keys: [String] = []
            for id in ["1", "2"] {
                try await cluster.submit(Self.job(id, origin, path: "/\(id)"))
                keys.append(try await cluster.events.terminal(of: id).key)
            }
            try await cluster.submit(Self.job("hit", origin, path: "/1"))
            let used = try await cluster.events.terminal(of: "hit").key
            try await until("the hit is recorded") {
                try await cluster.client.send("ZRANK", "halcyon:{budget:}:used", .string(used)).integer == 1
            }
            try await cluster.submit(Self.job("3", origin, path: "/3"))
            _ = try await cluster.events.terminal(of: "3")
            #expect(try await cluster.client.send("EXISTS", .string(used)).integer == 1)
            #expect(used == keys[0])
            #expect(try await cluster.client.send("EXISTS", .string(keys[1])).integer == 0)
        }
    }
}

/// A counter that starts at 0.
private final class Counter: Sendable {
    private let count = Lock(0)

    func next() -> Int {
        count.withLock { count in
            count += 1
            return count - 1
        }
    }
}
