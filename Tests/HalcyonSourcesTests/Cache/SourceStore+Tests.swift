@testable import HalcyonSources

extension SourceStore {
    /// Keeps what nobody waits for, and what no lease was had for.
    @discardableResult
    func store(_ entry: SourceEntry, as key: String, for seconds: Double) async throws -> Bool {
        try await store(entry, as: key, for: seconds, StoreOptions())
    }
}
