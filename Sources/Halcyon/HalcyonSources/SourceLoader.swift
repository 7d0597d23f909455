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
    public func load(_ request: SourceRequest) async throws -> LoadedSource {
        guard case .loaded(let loaded) = try await answer(request, unlike: nil) else {
            throw Failure(.internal, "\(request.source.shownText): unchanged, and nobody had asked")
        }
        return loaded
    }

    /// The source, unless it is still what its validators say; asked of providers that can tell.
    /// - Throws: as ``load(_:)``.
    public func load(_ request: SourceRequest, unlike known: Validators) async throws -> SourceAnswer {
        try await answer(request, unlike: known)
    }

    private func answer(_ request: SourceRequest, unlike known: Validators?) async throws -> SourceAnswer {
        if case .video(let video) = request.source {
            return try await self.video.answer(VideoProvider.Reference(video, request), known)
        }
        return try await stored.load(request, unlike: known)
    }

    /// Puts a result where a job wants it, by HTTP, under the rules for addresses and time that sources are loaded by.
    /// - Parameter mediaType: what the bytes are, such as `image/jpeg`.
    /// - Throws: ``Failure``; `CancellationError` when the task is cancelled, which ends the transfer.
    public func put(_ body: [UInt8], mediaType: String, at url: WebURL) async throws {
        try await stored.put(body, mediaType: mediaType, at: url)
    }

    /// What the source is asked for with that its response may depend on (RFC 9110, section 12.5.5).
    ///
    /// In whichever encoding a body travels, it arrives as the same bytes.
    func fields(of request: SourceRequest) -> HeaderFields {
        var fields: HeaderFields = [("User-Agent", stored.userAgent), ("Accept", "*/*"), ("Accept-Encoding", "any")]
        for field in request.headers.fields { fields[field.name] = field.value }
        return fields
    }

    /// Who serves the source; nil where nobody is asked.
    func origin(of source: Source) -> Origin? { stored.origin(of: source) }

    /// Ends all transfers and connections.
    public func close() async { await stored.close() }
}
