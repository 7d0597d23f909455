import HalcyonModel
import Testing

/// Sources whose bytes are part of the job.
@Suite struct DataProviderTests {
    @Test func returnsBytesThatAreFreshForAYear() async throws {
        let bytes = (0..<100_000).map { UInt8(truncatingIfNeeded: $0) }
        try await withLoader { loader in
            for data in [try DataSource(bytes, name: "a"), try DataSource(bytes) { _ in "b" }] {
                let loaded = try await loader.load(.data(data))
                #expect(loaded.body == bytes && loaded.status == nil)
                #expect(
                    ResultTTL(maxAge: 0, headers: loaded.headers, completedAt: loaded.completedAt)
                        == .seconds(31_536_000))
            }
        }
    }
}
