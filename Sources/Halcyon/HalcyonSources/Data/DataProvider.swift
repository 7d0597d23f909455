import HalcyonModel

/// Gives the bytes that came with the job.
struct DataProvider: SourceProvider {
    func load(_ source: DataSource) async throws -> LoadedSource {
        // The same key is the same bytes: nothing there can change.
        LoadedSource(body: source.bytes, lifetime: .unchanging)
    }
}

extension Duration {
    /// A year: for what is always the same.
    static let unchanging = Duration.seconds(31_536_000)
}
