@testable import HalcyonSources

extension SourceStore {
    /// Stores an entry for which no worker waits and which was fetched without a lease.
    @discardableResult
    func store(_ entry: SourceEntry, as key: String, for seconds: Double) async throws -> Bool {
        try await store(entry, as: key, for: seconds, StoreOptions())
    }
}
