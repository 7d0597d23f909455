import HalcyonModel

/// Loads sources of every kind.
public struct SourceLoader: Sendable {
    private let web: WebProvider

    /// It owns its connections: ``close()`` ends them.
    public init(_ options: SourceOptions = SourceOptions()) {
        web = WebProvider(options)
    }

    /// - Throws: ``Failure``; `CancellationError` when the task is cancelled, which ends the transfer.
    public func load(_ source: Source) async throws -> LoadedSource {
        switch source {
        case .web(let url): try await web.load(url)
        }
    }

    /// Ends all transfers and connections.
    public func close() async { await web.close() }
}
