import HalcyonModel
import Telemetry
import TestSupport
import Testing

@testable import HalcyonSources

/// A source whose askers have all gone by the time that it could be given.
@Suite struct UnwantedSourceTests {
    /// Asks for a source with a tier that keeps sources in a folder.
    private func with(_ body: (SourceTier, RawOrigin) async throws -> Void) async throws {
        let origin = RawOrigin { _ in RawOrigin.answer("200 OK", ["Cache-Control: max-age=600"], "a source") }
        let folder = TemporaryFolder("unwanted")
        try await withLoader({ $0.policy = AddressPolicy(allow: ["127.0.0.0/8"]) }) { loader in
            var options = SourceTierOptions()
            options.folder = folder.path
            let tier = try SourceTier(loader, nil, options: options, log: .silent, metrics: Metrics())
            try await body(tier, origin)
            await tier.close()
        }
        await folder.remove()
        try await origin.stop()
    }

    @Test func itIsNotUsedThoughItIsKept() async throws {
        try await with { tier, origin in
            let request = SourceRequest(try Source(origin.url("/a")))
            #expect(try await tier.load(request).isFromTier == false)
            await #expect(throws: CancellationError.self) {
                try await tier.load(request, onBegin: { false })
            }
            #expect(try await tier.load(request).isFromTier)
            #expect(origin.requests.count == 1)
        }
    }

    @Test func itIsNotAskedFor() async throws {
        try await with { tier, origin in
            await #expect(throws: CancellationError.self) {
                try await tier.load(SourceRequest(try Source(origin.url("/a"))), onBegin: { false })
            }
            #expect(origin.requests.isEmpty)
        }
    }

    @Test func itIsNotUsedThoughNothingIsFetched() async throws {
        try await with { tier, _ in
            await #expect(throws: CancellationError.self) {
                try await tier.load(SourceRequest(try Source("initials:AB")), onBegin: { false })
            }
        }
    }
}
