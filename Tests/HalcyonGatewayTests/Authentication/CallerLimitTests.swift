import Concurrency
import HTTPServer
import TestSupport
import Testing

@testable import HalcyonGateway

/// Rate and concurrency limits of callers.
@Suite struct CallerLimitTests {
    private static let start = ContinuousClock.now

    @Test func eachCallerHasItsOwnBucket() {
        var limits = CallerLimits()
        (limits.rate, limits.burst) = (1, 2)
        var rateLimiter = RateLimiterState(limits)
        for account: Principal.Account in [.key("a"), .key("b"), .address("a")] {
            #expect(rateLimiter.account(of: account, at: Self.start) == account)
            #expect(rateLimiter.consumeToken(account, at: Self.start) == nil)
            #expect(rateLimiter.consumeToken(account, at: Self.start) == nil)
            #expect(rateLimiter.consumeToken(account, at: Self.start) == .seconds(1))
        }
    }

    @Test func evictsOnlyIdleCallers() {
        var limits = CallerLimits()
        (limits.rate, limits.burst, limits.mostCallers) = (1, 1, 3)
        var rateLimiter = RateLimiterState(limits)
        let accounts: [Principal.Account] = (0..<6).map { .address("10.0.0.\($0)") }
        for account in accounts.prefix(3) {
            #expect(rateLimiter.account(of: account, at: Self.start) == account)
            _ = rateLimiter.consumeToken(account, at: Self.start)
        }
        let isAcquired = rateLimiter.acquirePermit(accounts[0], .stream)
        #expect(isAcquired)
        // No tracked caller is idle, so new callers share a bucket.
        #expect(rateLimiter.account(of: accounts[3], at: Self.start) == .others)
        #expect(rateLimiter.consumeToken(.others, at: Self.start) == nil)
        #expect(rateLimiter.account(of: accounts[4], at: Self.start) == .others)
        #expect(rateLimiter.consumeToken(.others, at: Self.start) != nil)
        #expect(rateLimiter.account(of: accounts[0], at: Self.start) == accounts[0])
        // The caller that holds a permit is still tracked. The buckets of the others are full again, so they are
        // evicted.
        let later = Self.start + .seconds(2)
        #expect(rateLimiter.account(of: accounts[5], at: later) == accounts[5])
        #expect(rateLimiter.count == 2)
        rateLimiter.releasePermit(accounts[0], .stream)
        #expect(rateLimiter.account(of: accounts[3], at: later) == accounts[3])
        #expect(rateLimiter.account(of: accounts[4], at: later + .seconds(2)) == accounts[4])
        #expect(rateLimiter.count == 1)
    }

    @Test func trackedCallersAreBounded() {
        var limits = CallerLimits()
        limits.mostCallers = 100
        var rateLimiter = RateLimiterState(limits)
        for index in 0..<100_000 {
            let now = Self.start + .microseconds(index)
            _ = rateLimiter.consumeToken(rateLimiter.account(of: .address("\(index)"), at: now), at: now)
        }
        #expect(rateLimiter.count <= 101)
    }

    @Test(arguments: [
        ("127.0.0.1", "127.0.0.1"), ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2"), ("2001:db8:1:2::9", "2001:db8:1:2"),
        ("2001:db8:1:3::9", "2001:db8:1:3"), ("::1", "0:0:0:0"), ("::ffff:10.1.2.3", "10.1.2.3"),
        ("fe80::1%eth0", "fe80:0:0:0"), ("", ""),
    ])
    func groupsIPv6AddressesByPrefix(_ address: String, _ block: String) {
        #expect(Principal.Account(remoteAddress: address) == .address(block))
    }

    @Test func rejectsExcessRequestsWithRetryAfter() async throws {
        let access = AccessOptions.with {
            $0.keys = [
                APIKey(name: "k", secret: "k", scopes: [.read]), APIKey(name: "l", secret: "l", scopes: [.read]),
            ]
            // So slow that no token is refilled during the test.
            ($0.limits.rate, $0.limits.burst) = (1.0 / 3600, 3)
        }
        try await withServer([.yes("GET", "/a", for: .read), .yes("GET", "/free", for: nil)], access) { port in
            let client = try RawClient(port)
            for _ in 0..<3 { #expect(try await client.get("/a", "X-API-Key: k\r\n").status == 200) }
            let answer = try await client.get("/a", "X-API-Key: k\r\n")
            #expect(answer.status == 429)
            let wait = try #require(answer.headers["retry-after"].flatMap { Int($0) })
            #expect((3000...3600).contains(wait))
            #expect(answer.headers["content-type"] == "application/problem+json")
            // Another key has its own bucket, and so has an address.
            #expect(try await client.get("/a", "X-API-Key: l\r\n").status == 200)
            #expect(try await client.get("/free").status == 200)
            // Requests with invalid keys count towards the address.
            #expect(try await client.get("/a", "X-API-Key: 1\r\n").status == 401)
            #expect(try await client.get("/a").status == 401)
            #expect(try await client.get("/a", "X-API-Key: 2\r\n").status == 429)
            #expect(try await RawClient(port, from: "127.0.0.2").get("/a", "X-API-Key: 3\r\n").status == 401)
        }
    }

    @Test func requestHoldsAPermitWhileInFlight() async throws {
        let access = AccessOptions.with { $0.limits.concurrency = 2 }
        let gate = AsyncStream.makeStream(of: Void.self)
        let waiting = Lock(0)
        let slow = Route("GET", "/slow", for: .read) { _ in
            waiting.withLock { $0 += 1 }
            for await _ in gate.stream { break }
            return HTTPServer.Response(status: 200, text: "yes")
        }
        try await withServer([slow, .yes("GET", "/quick", for: .read)], access) { port in
            let clients = try (0..<3).map { _ in try RawClient(port) }
            for client in clients.prefix(2) { try await client.send("GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n") }
            try await until("both requests are in flight") { waiting.withLock { $0 } == 2 }
            let refused = try await clients[2].get("/quick")
            #expect(refused.status == 429 && refused.headers["retry-after"] == "1")
            #expect(try await RawClient(port, from: "127.0.0.2").get("/quick").status == 200)
            gate.continuation.finish()
            for client in clients.prefix(2) { #expect(try await client.answer().status == 200) }
            #expect(try await clients[2].get("/quick").status == 200)
        }
    }

    @Test func streamHoldsAPermitUntilItsClientLeaves() async throws {
        let access = AccessOptions.with { ($0.limits.concurrency, $0.limits.streams) = (1, 2) }
        let stream = Route("GET", "/events", for: .read, kind: .stream) { _ in
            HTTPServer.Response(
                status: 200,
                body: .stream(length: nil) { writer in
                    try await writer.write([0x61])
                    try await Task.sleep(for: .seconds(600))
                })
        }
        let long = Route("GET", "/long", for: .read) { _ in
            HTTPServer.Response(
                status: 200,
                body: .stream(length: nil) { writer in
                    try await writer.write([0x62])
                    try await Task.sleep(for: .seconds(600))
                })
        }
        try await withServer([stream, long, .yes("GET", "/quick", for: .read)], access) { port in
            var listeners: [RawClient] = []
            for _ in 0..<2 {
                let client = try RawClient(port)
                try await client.send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
                #expect(try await client.head().status == 200)
                listeners.append(client)
            }
            // Streams and requests have separate permits.
            let client = try RawClient(port)
            #expect(try await client.get("/events").status == 429)
            #expect(try await client.get("/quick").status == 200)
            // A HEAD request of a stream ends at once.
            listeners.removeFirst()
            // The server closes the connection after such a response.
            try await until("the permit is released") {
                try await RawClient(port).ask("HEAD", "/events").status == 200
            }
            #expect(try await RawClient(port).ask("HEAD", "/events").status == 200)
            // A streamed response of a request holds its permit until it ends.
            let reader = try RawClient(port)
            try await reader.send("GET /long HTTP/1.1\r\nHost: localhost\r\n\r\n")
            #expect(try await reader.head().status == 200)
            #expect(try await client.get("/quick").status == 429)
            reader.closeWriting()
            try await until("the permit of the reader is released") { try await client.get("/quick").status == 200 }
            withExtendedLifetime(listeners) {}
        }
    }

    @Test func failedRequestReleasesItsPermit() async throws {
        struct TestError: Error {}
        let access = AccessOptions.with { $0.limits.concurrency = 1 }
        let broken = Route("GET", "/broken", for: .read) { _ in
            try await Task.sleep(for: .milliseconds(1))
            throw TestError()
        }
        try await withServer([broken], access) { port in
            let client = try RawClient(port)
            for _ in 0..<5 { #expect(try await client.get("/broken").status == 503) }
        }
    }
}
