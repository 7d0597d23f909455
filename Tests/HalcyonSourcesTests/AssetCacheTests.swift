import Concurrency
import Formats
import Glibc
import HalcyonModel
import TestSupport
import Testing
import Vips

@testable import HalcyonSources

@Suite(.limitedParallelism) struct AssetCacheTests {
    /// Runs `body` with an asset cache that may load from `origin`, and stops both.
    private func with(
        maximumBytes: Int = 1 << 20, defaultLifetime: Double = 60, _ origin: RawOrigin,
        _ body: (AssetCache) async throws -> Void
    ) async throws {
        var options = SourceOptions.patient
        options.policy = AddressPolicy(allow: ["127.0.0.0/8"])
        let pool = ThreadPool(name: "draw", threads: 1, onThreadEnd: VipsLibrary.endThread)
        let loader = SourceLoader(options, drawingOn: pool)
        let cache = AssetCache(maximumBytes: maximumBytes, defaultLifetime: defaultLifetime) {
            request, _ in
            try await loader.load(request)
        }
        let result: Result<Void, any Error>
        do { result = .success(try await body(cache)) } catch { result = .failure(error) }
        await loader.close()
        await blocking { pool.shutdown() }
        try await origin.stop()
        try result.get()
    }

    private func source(_ origin: RawOrigin, _ path: String = "/mark.png") throws -> Source {
        try Source(origin.url(path))
    }

    /// Composed and decomposed é are canonically equivalent, but they name two images.
    @Test func separatesCanonicallyEquivalentURLs() async throws {
        let origin = RawOrigin { request in
            // Some versions of libcurl percent-encode it.
            let isTwo = request.path.utf8.contains(0xcc) || request.path.lowercased().contains("%cc")
            return RawOrigin.answer("200 OK", ["Cache-Control: max-age=60"], isTwo ? "two" : "one")
        }
        let paths = [("/caf\u{e9}.png", "one"), ("/cafe\u{301}.png", "two")]
        try await with(origin) { cache in
            for _ in 0..<2 {
                for (path, text) in paths {
                    let request = SourceRequest(try source(origin, path))
                    #expect(try await cache.load(request).body == Array(text.utf8))
                }
            }
        }
    }

    @Test func concurrentRequestsShareOneLoad() async throws {
        let gate = Latch()
        let origin = RawOrigin { _ in
            gate.wait()
            return RawOrigin.answer("200 OK", ["Cache-Control: no-store"], "mark")
        }
        let source = try source(origin)
        try await with(origin) { cache in
            try await withThrowingTaskGroup(of: [UInt8].self) { group in
                for _ in 0..<200 { group.addTask { try await cache.load(SourceRequest(source)).body } }
                try await until("all requests wait") { cache.waiters(for: SourceRequest(source)) == 200 }
                gate.open()
                for try await body in group { #expect(body == Array("mark".utf8)) }
            }
            #expect(origin.requests.count == 1)
            // The response is `no-store`, so the next request loads again.
            _ = try await cache.load(SourceRequest(source))
            #expect(origin.requests.count == 2)
        }
    }

    @Test(arguments: [
        (["Cache-Control: max-age=60"], 1 << 20, 1), ([], 1 << 20, 1), (["Cache-Control: max-age=0"], 1 << 20, 3),
        (["Cache-Control: no-cache"], 1 << 20, 3), (["Cache-Control: max-age=60"], 1000, 3),
    ]) func reloadsOnlyStaleOrOversizedEntries(headers: [String], room: Int, requests: Int) async throws {
        let origin = RawOrigin { _ in RawOrigin.answer("200 OK", headers, String(repeating: "x", count: 2000)) }
        let source = try source(origin)
        try await with(maximumBytes: room, origin) { cache in
            for _ in 0..<3 {
                let loaded = try await cache.load(SourceRequest(source))
                #expect(loaded.body.count == 2000)
            }
            #expect(origin.requests.count == requests)
        }
    }

    /// The source cache returns what it has fetched some time ago.
    @Test(
        arguments: [
            (["Cache-Control": "max-age=6000"], 10, 1), (["Cache-Control": "max-age=6000"], 6001, 2),
            ([:], 10, 1), ([:], 6001, 2),
        ] as [(HTTPFields, Double, Int)])
    func ageReducesTheLifetime(headers: HTTPFields, age: Double, loads: Int) async throws {
        let count = Lock(0)
        let cache = AssetCache(maximumBytes: 1 << 20, defaultLifetime: 6000) { _, _ in
            count.withLock { $0 += 1 }
            return LoadedSource(body: [1], headers: headers, completedAt: Timestamp.now.seconds - age)
        }
        let request = SourceRequest(try Source("http://example.org/mark.png"))
        for _ in 0..<2 { _ = try await cache.load(request) }
        let counted = count.withLock { $0 }
        #expect(counted == loads)
    }

    @Test func cancelledWaiterDoesNotAffectOthers() async throws {
        let gate = Latch()
        let origin = RawOrigin { _ in
            gate.wait()
            return RawOrigin.answer("200 OK", [], "mark")
        }
        let source = try source(origin)
        try await with(origin) { cache in
            let first = Task { try await cache.load(SourceRequest(source)).body }
            try await until("the first request waits") { cache.waiters(for: SourceRequest(source)) == 1 }
            let second = Task { try await cache.load(SourceRequest(source)).body }
            try await until("both requests wait") { cache.waiters(for: SourceRequest(source)) == 2 }
            first.cancel()
            await #expect(throws: CancellationError.self) { try await first.value }
            gate.open()
            #expect(try await second.value == Array("mark".utf8))
            #expect(origin.requests.count == 1)
        }
    }

    @Test func cancelsLoadWithItsLastWaiter() async throws {
        let isFirst = Lock(true)
        let origin = RawOrigin { _ in
            let waits = isFirst.withLock { isFirst in
                defer { isFirst = false }
                return isFirst
            }
            return waits ? [.awaitEnd] : RawOrigin.answer("200 OK", [], "mark")
        }
        let source = try source(origin)
        try await with(origin) { cache in
            let first = Task { try await cache.load(SourceRequest(source)).body }
            try await until("the origin has a request") { origin.requests.count == 1 }
            first.cancel()
            await #expect(throws: CancellationError.self) { try await first.value }
            #expect(try await cache.load(SourceRequest(source)).body == Array("mark".utf8))
            try await until("the transfer is aborted") { origin.cuts == 1 }
            #expect(origin.requests.count == 2)
        }
    }

    @Test func failureReachesAllWaitersAndIsNotCached() async throws {
        let gate = Latch()
        let fails = Lock(true)
        let origin = RawOrigin { _ in
            gate.wait()
            return fails.withLock { $0 } ? RawOrigin.answer("404 Not Found") : RawOrigin.answer("200 OK", [], "mark")
        }
        let source = try source(origin)
        try await with(origin) { cache in
            let tasks = (0..<3).map { _ in Task { try await cache.load(SourceRequest(source)).body } }
            try await until("all requests wait") { cache.waiters(for: SourceRequest(source)) == 3 }
            gate.open()
            for task in tasks {
                let failure = await #expect(throws: JobError.self) { try await task.value }
                #expect(failure?.code == .notFound)
            }
            #expect(origin.requests.count == 1)
            fails.withLock { $0 = false }
            #expect(try await cache.load(SourceRequest(source)).body == Array("mark".utf8))
        }
    }

    @Test func namesTheFailingAssetOfSeveral() async throws {
        let origin = RawOrigin { request in
            request.path == "/none" ? RawOrigin.answer("503 Busy") : RawOrigin.answer("200 OK", [], "mark")
        }
        let (good, bad) = (try source(origin), try source(origin, "/none"))
        try await with(origin) { cache in
            let failure = await #expect(throws: JobError.self) { try await cache.load(all: [good, bad], of: nil) }
            #expect(failure?.code == .httpError && failure?.isRetryable == true)
            #expect(failure?.message == "the asset \(origin.url("/none")): the origin answered 503")
            let initials = Source.initials(try Initials("JD"))
            let bodies = try await cache.load(all: [good, initials], of: nil)
            #expect(bodies[good] == Array("mark".utf8) && bodies[initials]?.starts(with: [0x89, 0x50]) == true)
        }
    }
}
