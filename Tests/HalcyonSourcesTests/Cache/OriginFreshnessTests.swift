import Concurrency
import Formats
import HalcyonModel
import Telemetry
import TestSupport
import Testing

@testable import HalcyonSources

/// Redirects, revalidation and errors of origins, as the source cache handles them.
@Suite struct OriginFreshnessTests {
    /// Runs `body` with a source cache on disk and an origin that responds with `respond`.
    private func with(
        _ respond: @escaping @Sendable (RawOrigin.Request) -> [RawOrigin.Step],
        _ body: (_ load: @Sendable (String) async throws -> CachedSource, RawOrigin) async throws -> Void
    ) async throws {
        let origin = RawOrigin(respond)
        let folder = TemporaryFolder("freshness")
        try await withLoader({ $0.policy = AddressPolicy(allow: ["127.0.0.0/8"]) }) { loader in
            var options = SourceCacheOptions()
            options.folder = folder.path
            options.failures = FailureLifetimes()
            (options.failures.failing, options.failures.refused) = (0, 0)
            let cache = try SourceCache(loader, nil, options: options, log: .silent, metrics: Metrics())
            try await body({ try await cache.fetch(SourceRequest(try Source(origin.url($0)))) }, origin)
            await cache.close()
        }
        await folder.remove()
        try await origin.stop()
    }

    private static func isConditional(_ request: RawOrigin.Request) -> Bool {
        let head = request.head.lowercased()
        return head.contains("if-none-match:") || head.contains("if-modified-since:")
    }

    private static func lifetime(of found: CachedSource) -> ResultTTL {
        ResultTTL(maxAge: 0, headers: found.source.headers, completedAt: found.source.completedAt)
    }

    @Test func revalidatesOnlyTheSameRedirectTarget() async throws {
        let target = Lock("/t1")
        try await with { request in
            if request.path == "/r" {
                return RawOrigin.answer(
                    "302 Found", ["Cache-Control: max-age=0", "Location: \(target.withLock { $0 })"])
            }
            if Self.isConditional(request) { return RawOrigin.answer("304 Not Modified", ["ETag: \"a\""]) }
            return RawOrigin.answer("200 OK", ["ETag: \"a\"", "Cache-Control: max-age=600"], request.path)
        } _: { load, origin in
            let first = try await load("/r")
            #expect(first.source.body == Array("/t1".utf8))
            // The same target revalidates its own response.
            let confirmed = try await load("/r")
            #expect(confirmed.isFromCache && confirmed.source.body == Array("/t1".utf8))
            target.withLock { $0 = "/t2" }
            for _ in 1...2 {
                let found = try await load("/r")
                #expect(found.source.body == Array("/t2".utf8))
            }
            let requests = origin.requests
            #expect(requests.map(\.path) == ["/r", "/t1", "/r", "/t1", "/r", "/t2", "/r", "/t2"])
            #expect(requests.map(Self.isConditional) == [false, false, false, true, false, false, false, true])
        }
    }

    @Test func omitsValidatorsOfUnknownResources() async throws {
        let origin = RawOrigin { _ in RawOrigin.answer("200 OK", ["ETag: \"a\""], "picture") }
        try await withLoader({ $0.policy = AddressPolicy(allow: ["127.0.0.0/8"]) }) { loader in
            let source = try Source(origin.url("/a"))
            let answer = try await loader.load(source, ifNoneMatch: Validators(etag: "\"a\""))
            guard case .loaded = answer else {
                Issue.record("the source was not loaded")
                return
            }
        }
        #expect(origin.requests.map(Self.isConditional) == [false])
        try await origin.stop()
    }

    @Test(
        arguments: [
            ("302 Found", "Cache-Control: no-store", .notStored, 4),
            ("302 Found", "Cache-Control: private, max-age=50", .seconds(50), 4),
            ("302 Found", "Expires: 0", .notStored, 4), ("307 Temporary Redirect", "X-A: 1", .notStored, 4),
            ("301 Moved", "Cache-Control: no-cache", .notStored, 4),
            ("302 Found", "Cache-Control: max-age=50", .seconds(50), 2),
            ("301 Moved", "X-A: 1", .seconds(31_536_000), 2),
        ] as [(String, String, ResultTTL, Int)])
    func redirectLimitsFreshness(
        _ status: String, _ field: String, _ lifetime: ResultTTL, _ requests: Int
    ) async throws {
        try await with { request in
            request.path == "/r"
                ? RawOrigin.answer(status, [field, "Location: /t"])
                : RawOrigin.answer("200 OK", ["Cache-Control: max-age=31536000"], "picture")
        } _: { load, origin in
            for _ in 1...2 {
                let found = try await load("/r")
                #expect(Self.lifetime(of: found) == lifetime)
            }
            #expect(origin.requests.count == requests)
        }
    }

    @Test(arguments: ["Cache-Control: no-store", "Cache-Control: private", "Vary: *"])
    func notModifiedResponseCanForbidStoring(field: String) async throws {
        try await with { request in
            Self.isConditional(request)
                ? RawOrigin.answer("304 Not Modified", [field])
                : RawOrigin.answer("200 OK", ["ETag: \"a\"", "Cache-Control: max-age=0"], "picture")
        } _: { load, origin in
            for _ in 1...3 {
                let found = try await load("/a")
                #expect(found.source.body == Array("picture".utf8))
            }
            #expect(origin.requests.map(Self.isConditional) == [false, true, false])
        }
    }

    @Test(
        arguments: [
            ("500 X", true), ("502 X", true), ("503 X", true), ("504 X", true), ("408 X", false), ("425 X", false),
            ("429 X", false), ("501 X", false), ("404 X", false),
        ])
    func servesStaleOnlyForErrorsOfRFC5861(_ status: String, _ isUsed: Bool) async throws {
        try await with { request in
            Self.isConditional(request)
                ? RawOrigin.answer(status)
                : RawOrigin.answer(
                    "200 OK", ["ETag: \"a\"", "Cache-Control: max-age=0, stale-if-error=600"], "picture")
        } _: { load, _ in
            _ = try await load("/a")
            let found = try? await load("/a")
            #expect((found != nil) == isUsed)
        }
    }

    /// RFC 9111, section 4.2.3: the age of a response begins when its request is sent.
    @Test func waitingForTheOriginIsNoPartOfTheAge() async throws {
        let isOpen = Lock(false)
        let origin = RawOrigin { request in
            let response = RawOrigin.answer("200 OK", ["Cache-Control: max-age=600"], "picture")
            return request.path == "/slow" ? [.wait { isOpen.withLock { $0 } }] + response : response
        }
        let folder = TemporaryFolder("freshness")
        try await withLoader({ $0.policy = AddressPolicy(allow: ["127.0.0.0/8"]) }) { loader in
            var (options, limits) = (SourceCacheOptions(), OriginLimits())
            options.folder = folder.path
            limits.concurrency = 1
            limits.lease = .seconds(600)
            let metrics = Metrics()
            let cache = try SourceCache(loader, nil, options: options, limits: limits, log: .silent, metrics: metrics)
            let slow = Task { try await cache.fetch(SourceRequest(try Source(origin.url("/slow")))) }
            try await until("the origin is busy") { origin.requests.count == 1 }
            let request = SourceRequest(try Source(origin.url("/next")))
            let next = Task { try await cache.fetch(request) }
            try await until("the next load waits for the origin") { metrics.value(of: "halcyon_origin_waiting") == 1 }
            let start = ContinuousClock.now
            try await until("it has waited for a while") { start.duration(to: .now) > .milliseconds(200) }
            let opened = Timestamp.now.seconds
            isOpen.withLock { $0 = true }
            _ = try await slow.value
            _ = try await next.value
            let found = await cache.fetcher.stores.find(request.tierKey) { _ in true }
            let age = try #require(found.entry?.entry.response.initialAge)
            let longest = Timestamp.now.seconds - opened
            #expect(age <= longest)
            await cache.close()
        }
        await folder.remove()
        try await origin.stop()
    }

    @Test func caches203Responses() async throws {
        try await with { _ in
            RawOrigin.answer("203 Non-Authoritative Information", ["Cache-Control: max-age=600"], "picture")
        } _: { load, origin in
            for _ in 1...2 {
                let found = try await load("/a")
                #expect(found.source.body == Array("picture".utf8))
            }
            #expect(origin.requests.count == 1)
        }
    }
}
