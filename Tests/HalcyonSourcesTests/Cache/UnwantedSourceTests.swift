import HalcyonCoordination
import HalcyonModel
import Telemetry
import TestSupport
import Testing

@testable import HalcyonSources

/// Sources whose requesters have all given up before the source is returned.
@Suite struct UnwantedSourceTests {
    /// Runs `body` with a source cache on disk and an origin.
    private func with(_ body: (SourceCache, RawOrigin) async throws -> Void) async throws {
        let origin = RawOrigin { _ in RawOrigin.answer("200 OK", ["Cache-Control: max-age=600"], "a source") }
        let folder = TemporaryFolder("unwanted")
        try await withLoader({ $0.policy = AddressPolicy(allow: ["127.0.0.0/8"]) }) { loader in
            var options = SourceCacheOptions()
            options.folder = folder.path
            let cache = try SourceCache(loader, nil, options: options, log: .silent, metrics: Metrics())
            try await body(cache, origin)
            await cache.close()
        }
        await folder.remove()
        try await origin.stop()
    }

    @Test func cachedSourceIsNotReturned() async throws {
        try await with { cache, origin in
            let request = SourceRequest(try Source(origin.url("/a")))
            #expect(try await cache.fetch(request).isFromCache == false)
            await #expect(throws: CancellationError.self) {
                try await cache.fetch(request, .standard, WorkContext { _ in false })
            }
            #expect(try await cache.fetch(request).isFromCache)
            #expect(origin.requests.count == 1)
        }
    }

    @Test func originIsNotRequested() async throws {
        try await with { cache, origin in
            await #expect(throws: CancellationError.self) {
                try await cache.fetch(
                    SourceRequest(try Source(origin.url("/a"))), .standard, WorkContext { _ in false })
            }
            #expect(origin.requests.isEmpty)
        }
    }

    @Test func generatedSourceIsNotReturned() async throws {
        try await with { cache, _ in
            await #expect(throws: CancellationError.self) {
                try await cache.fetch(SourceRequest(try Source("initials:AB")), .standard, WorkContext { _ in false })
            }
        }
    }
}
