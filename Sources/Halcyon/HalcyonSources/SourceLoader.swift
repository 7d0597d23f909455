import HalcyonModel
import Threads

/// Loads sources of every kind.
public struct SourceLoader: Sendable {
    private let stored: Providers
    private let video: VideoProvider

    /// It owns its connections: ``close()`` ends them.
    /// - Parameters:
    ///   - custom: providers of the host program.
    ///   - pool: where sources are drawn that come from nowhere: threads for libvips. Who made it shuts it down.
    public init(
        _ options: SourceOptions = SourceOptions(), custom: CustomProviders = CustomProviders(),
        drawingOn pool: ThreadPool
    ) {
        stored = Providers(options, custom, pool)
        video = VideoProvider(
            options.video, maximumBytes: options.maximumBytes, over: stored, places: pool.width)
    }

    /// - Throws: ``Failure``; `CancellationError` when the task is cancelled, which ends the transfer.
    public func load(_ source: Source) async throws -> LoadedSource {
        guard case .loaded(let loaded) = try await answer(source, unlike: nil) else {
            throw Failure(.internal, "\(source.text): unchanged, and nobody had asked")
        }
        return loaded
    }

    /// The source, unless it is still what its validators say; asked of providers that can tell.
    /// - Throws: as ``load(_:)``.
    public func load(_ source: Source, unlike known: Validators) async throws -> SourceAnswer {
        try await answer(source, unlike: known)
    }

    private func answer(_ source: Source, unlike known: Validators?) async throws -> SourceAnswer {
        if case .video(let video) = source { return try await self.video.answer(video, known) }
        return try await stored.load(source, unlike: known)
    }

    /// What a request for the source says that its response may depend on (RFC 9110, section 12.5.5).
    ///
    /// In whichever encoding a body travels, it arrives as the same bytes.
    func requestFields(for source: Source) -> HeaderFields {
        [("User-Agent", stored.userAgent), ("Accept", "*/*"), ("Accept-Encoding", "any")]
    }

    /// Who serves the source; nil where nobody is asked.
    func origin(of source: Source) -> Origin? { stored.origin(of: source) }

    /// Ends all transfers and connections.
    public func close() async { await stored.close() }
}
