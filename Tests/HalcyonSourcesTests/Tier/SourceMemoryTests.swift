import HalcyonModel
import Telemetry
import TestSupport
import Testing
import Threads

@testable import HalcyonSources

/// How many sources are in memory at once.
@Suite struct SourceMemoryTests {
    @Test func aLargeSourceTakesThePlacesOfSeveral() async throws {
        let origin = RawOrigin { request in
            RawOrigin.answer("200 OK", [], String(repeating: "a", count: request.path.hasSuffix("large") ? 2_500 : 10))
        }
        try await withLoader({ $0.policy = AddressPolicy(allow: ["127.0.0.0/8"]) }) { loader in
            let places = Slots(3)
            let tier = try SourceTier(
                loader, nil, places: places, bytesPerPlace: 1000, log: .silent, metrics: Metrics())
            @Sendable func load(_ path: String) async throws -> TieredSource {
                try await tier.load(SourceRequest(try Source(origin.url(path))))
            }
            let small = try await load("/small")
            var large: TieredSource? = try await load("/large")
            // One place was left for it, and it takes three.
            let next = Task { try await load("/next") }
            try await until("there is no place") { places.waiting == 1 }
            #expect(origin.requests.count == 2)
            small.place?.release()
            #expect(places.waiting == 1)
            #expect(large?.source.body.count == 2_500)
            large = nil
            #expect(try await next.value.source.body.count == 10)
            await tier.close()
        }
        try await origin.stop()
    }
}
