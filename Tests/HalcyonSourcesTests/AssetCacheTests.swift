import Concurrency
import Glibc
import HalcyonModel
import TestSupport
import Testing
import Vips

@testable import HalcyonSources

@Suite(.limitedParallelism) struct AssetCacheTests {
    /// Runs `body` with sources of an origin on this machine.
    private func with(
        maximumBytes: Int = 1 << 20, defaultLifetime: Double = 60, _ origin: RawOrigin,
        _ body: (AssetCache) async throws -> Void
    ) async throws {
        var options = SourceOptions()
        options.policy = AddressPolicy(allow: ["127.0.0.0/8"])
        let pool = ThreadPool(name: "draw", threads: 1, onThreadEnd: VipsLibrary.endThread)
        let loader = SourceLoader(options, drawingOn: pool)
        let shared = AssetCache(maximumBytes: maximumBytes, defaultLifetime: defaultLifetime) {
            request, _ in
            try await loader.load(request)
        }
        let result: Result<Void, any Error>
        do { result = .success(try await body(shared)) } catch { result = .failure(error) }
        await loader.close()
        await blocking { pool.shutdown() }
        try await origin.stop()
        try result.get()
    }

    private func source(_ origin: RawOrigin, _ path: String = "/mark.png") throws -> Source {
        try Source(origin.url(path))
    }

    /// Two spellings of é are two pictures, asked for at once and one after the other.
    @Test func whatLooksTheSameIsNotTheSame() async throws {
        let origin = RawOrigin { request in
            // Some versions of libcurl percent-encode it.
            let isTwo = request.path.utf8.contains(0xcc) || request.path.lowercased().contains("%cc")
            return RawOrigin.answer("200 OK", ["Cache-Control: max-age=60"], isTwo ? "two" : "one")
        }
        let paths = [("/caf\u{e9}.png", "one"), ("/cafe\u{301}.png", "two")]
        try await with(origin) { shared in
            for _ in 0..<2 {
                for (path, text) in paths {
                    let request = SourceRequest(try source(origin, path))
                    #expect(try await shared.load(request).body == Array(text.utf8))
                }
            }
        }
    }

    @Test func howeverManyAskAtOnceOneLoadServesAll() async throws {
        let gate = Latch()
        let origin = RawOrigin { _ in
            gate.wait()
            return RawOrigin.answer("200 OK", ["Cache-Control: no-store"], "mark")
        }
        let source = try source(origin)
        try await with(origin) { shared in
            try await withThrowingTaskGroup(of: [UInt8].self) { group in
                for _ in 0..<200 { group.addTask { try await shared.load(SourceRequest(source)).body } }
                try await until("all wait") { shared.waiters(for: SourceRequest(source)) == 200 }
                gate.open()
                for try await body in group { #expect(body == Array("mark".utf8)) }
            }
            #expect(origin.requests.count == 1)
            // It was not to be stored: the next one asks again.
            _ = try await shared.load(SourceRequest(source))
            #expect(origin.requests.count == 2)
        }
    }

    @Test(arguments: [
        (["Cache-Control: max-age=60"], 1 << 20, 1), ([], 1 << 20, 1), (["Cache-Control: max-age=0"], 1 << 20, 3),
        (["Cache-Control: no-cache"], 1 << 20, 3), (["Cache-Control: max-age=60"], 1000, 3),
    ]) func whatIsFreshIsNotLoadedAgain(headers: [String], room: Int, requests: Int) async throws {
        let origin = RawOrigin { _ in RawOrigin.answer("200 OK", headers, String(repeating: "x", count: 2000)) }
        let source = try source(origin)
        try await with(maximumBytes: room, origin) { shared in
            for _ in 0..<3 {
                let loaded = try await shared.load(SourceRequest(source))
                #expect(loaded.body.count == 2000)
            }
            #expect(origin.requests.count == requests)
        }
    }

    @Test func whoGivesUpLeavesTheOthersAlone() async throws {
        let gate = Latch()
        let origin = RawOrigin { _ in
            gate.wait()
            return RawOrigin.answer("200 OK", [], "mark")
        }
        let source = try source(origin)
        try await with(origin) { shared in
            let first = Task { try await shared.load(SourceRequest(source)).body }
            try await until("the first waits") { shared.waiters(for: SourceRequest(source)) == 1 }
            let second = Task { try await shared.load(SourceRequest(source)).body }
            try await until("both wait") { shared.waiters(for: SourceRequest(source)) == 2 }
            first.cancel()
            await #expect(throws: CancellationError.self) { try await first.value }
            gate.open()
            #expect(try await second.value == Array("mark".utf8))
            #expect(origin.requests.count == 1)
        }
    }

    @Test func whenNobodyIsLeftTheLoadEndsAndTheNextStartsAfresh() async throws {
        let isFirst = Lock(true)
        let origin = RawOrigin { _ in
            let waits = isFirst.withLock { isFirst in
                defer { isFirst = false }
                return isFirst
            }
            return waits ? [.awaitEnd] : RawOrigin.answer("200 OK", [], "mark")
        }
        let source = try source(origin)
        try await with(origin) { shared in
            let first = Task { try await shared.load(SourceRequest(source)).body }
            try await until("the origin was asked") { origin.requests.count == 1 }
            first.cancel()
            await #expect(throws: CancellationError.self) { try await first.value }
            #expect(try await shared.load(SourceRequest(source)).body == Array("mark".utf8))
            try await until("the transfer was cut") { origin.cuts == 1 }
            #expect(origin.requests.count == 2)
        }
    }

    @Test func aFailureIsToldToAllAndNotKept() async throws {
        let gate = Latch()
        let fails = Lock(true)
        let origin = RawOrigin { _ in
            gate.wait()
            return fails.withLock { $0 } ? RawOrigin.answer("404 Not Found") : RawOrigin.answer("200 OK", [], "mark")
        }
        let source = try source(origin)
        try await with(origin) { shared in
            let tasks = (0..<3).map { _ in Task { try await shared.load(SourceRequest(source)).body } }
            try await until("all wait") { shared.waiters(for: SourceRequest(source)) == 3 }
            gate.open()
            for task in tasks {
                let failure = await #expect(throws: JobError.self) { try await task.value }
                #expect(failure?.code == .notFound)
            }
            #expect(origin.requests.count == 1)
            fails.withLock { $0 = false }
            #expect(try await shared.load(SourceRequest(source)).body == Array("mark".utf8))
        }
    }

    @Test func ofSeveralTheOneThatFailsIsNamed() async throws {
        let origin = RawOrigin { request in
            request.path == "/none" ? RawOrigin.answer("503 Busy") : RawOrigin.answer("200 OK", [], "mark")
        }
        let (good, bad) = (try source(origin), try source(origin, "/none"))
        try await with(origin) { shared in
            let failure = await #expect(throws: JobError.self) { try await shared.load(all: [good, bad], of: nil) }
            #expect(failure?.code == .httpError && failure?.isRetryable == true)
            #expect(failure?.message == "the asset \(origin.url("/none")): the origin answered 503")
            let initials = Source.initials(try Initials("JD"))
            let bodies = try await shared.load(all: [good, initials], of: nil)
            #expect(bodies[good] == Array("mark".utf8) && bodies[initials]?.starts(with: [0x89, 0x50]) == true)
        }
    }
}
