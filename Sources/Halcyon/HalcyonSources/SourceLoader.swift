import HalcyonModel
import Threads

/// Loads sources of every kind.
public struct SourceLoader: Sendable {
    private let web: WebProvider
    private let initials: InitialsProvider

    /// It owns its connections: ``close()`` ends them.
    /// - Parameter pool: where sources are drawn that come from nowhere: threads for libvips. Who made it shuts it down.
    public init(_ options: SourceOptions = SourceOptions(), drawingOn pool: ThreadPool) {
        web = WebProvider(options)
        initials = InitialsProvider(pool: pool)
    }

    /// - Throws: ``Failure``; `CancellationError` when the task is cancelled, which ends the transfer.
    public func load(_ source: Source) async throws -> LoadedSource {
        switch source {
        case .web(let url): try await web.load(url)
        case .initials(let initials): try await self.initials.load(initials)
        }
    }

    /// Ends all transfers and connections.
    public func close() async { await web.close() }
}
