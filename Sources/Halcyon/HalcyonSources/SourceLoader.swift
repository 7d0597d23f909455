import Formats
import HalcyonModel
import Threads

/// Fetches sources of every kind, each from its provider.
public struct SourceLoader: Sendable {
    private var web: WebProvider
    private let initials: InitialsProvider
    private var file: FileProvider
    private let data = DataProvider()
    private var s3: S3Provider
    private let custom: CustomProviders
    private var video: VideoProvider?
    private var maximumBytes: Int

    /// It owns its connections: ``close()`` ends them.
    /// - Parameters:
    ///   - custom: providers of the host program.
    ///   - pool: threads for libvips, on which initials are drawn. The caller shuts it down.
    public init(
        _ options: SourceOptions = SourceOptions(), custom: CustomProviders = CustomProviders(),
        drawingOn pool: ThreadPool
    ) {
        web = WebProvider(options)
        initials = InitialsProvider(pool: pool)
        file = FileProvider(roots: options.fileRoots, maximumBytes: options.maximumBytes)
        s3 = S3Provider(options.s3, over: web)
        self.custom = custom
        maximumBytes = options.maximumBytes
        let videos = limited(to: options.video.maximumBytes)
        video = VideoProvider(options.video, maximumBytes: options.maximumBytes, places: pool.width) {
            try await videos.fetch($0, ifNoneMatch: $1)
        }
    }

    /// Fetches a source.
    /// - Parameter known: ``LoadedSource/validators`` of the bytes that the caller has; nil if it has none.
    /// - Throws: ``Failure``; `CancellationError` when the task is cancelled, which ends the transfer.
    public func fetch(_ request: SourceRequest, ifNoneMatch known: Validators? = nil) async throws -> FetchResponse {
        switch request.source {
        case .web(let url):
            return try await web.fetch(WebProvider.Reference(url, request.headers), ifNoneMatch: known)
        case .initials(let letters): return try await initials.fetch(letters, ifNoneMatch: known)
        case .file(let file): return try await self.file.fetch(file, ifNoneMatch: known)
        case .data(let bytes): return try await data.fetch(bytes, ifNoneMatch: known)
        case .s3(let object): return try await s3.fetch(object, ifNoneMatch: known)
        case .custom(let source): return try await fetch(source, ifNoneMatch: known)
        case .video(let frame):
            guard let video else {
                throw Failure(.invalidJob, "\(request.source.shownText) is a frame of a video, not a video")
            }
            return try await video.fetch(VideoProvider.Reference(frame, request), ifNoneMatch: known)
        }
    }

    /// Fetches from a provider of the host program. Any error of its own becomes a failure that names it.
    private func fetch(_ source: CustomSource, ifNoneMatch known: Validators?) async throws -> FetchResponse {
        let provider = try custom.provider(source.name)
        do {
            let response = try await provider.fetch(source.reference, ifNoneMatch: known)
            if case .loaded(let loaded) = response, loaded.body.count > maximumBytes {
                throw Failure(tooLargeFor: maximumBytes)
            }
            return response
        } catch let failure as Failure {
            throw failure.within(source.name)
        } catch let error as CancellationError {
            throw error
        } catch {
            throw Failure(.providerError, "\(source.name): \(error)", cause: error)
        }
    }

    /// Puts a result at a URL by HTTP, under the rules for addresses and time that apply to sources.
    /// - Parameter mediaType: of the bytes, such as `image/jpeg`.
    /// - Throws: ``Failure``; `CancellationError` when the task is cancelled, which ends the transfer.
    public func put(_ body: [UInt8], mediaType: String, at url: WebURL) async throws {
        try await web.put(body, mediaType: mediaType, at: url)
    }

    /// The request fields that a source's response may depend on (RFC 9110, section 12.5.5).
    ///
    /// In whichever encoding a body travels, it arrives as the same bytes.
    func fields(of request: SourceRequest) -> HTTPFields {
        var fields: HTTPFields = [
            "User-Agent": web.options.userAgent, "Accept": "*/*", "Accept-Encoding": "any",
        ]
        for field in request.headers.fields { fields[field.name] = field.value }
        return fields
    }

    /// The origin that serves a source; nil if none is asked.
    func origin(of source: Source) -> Origin? {
        switch source {
        case .web(let url): Origin(url)
        case .s3(let object): s3.origin(of: object)
        case .video(let video): origin(of: video.input)
        case .initials, .file, .data, .custom: nil
        }
    }

    /// The same loader with another limit for the bytes of a source.
    private func limited(to bytes: Int) -> SourceLoader {
        var loader = self
        loader.web.maximumBytes = bytes
        loader.file.maximumBytes = bytes
        loader.s3.maximumBytes = bytes
        loader.maximumBytes = bytes
        return loader
    }

    /// Ends all transfers and connections.
    public func close() async { await web.close() }
}

extension Failure {
    /// More bytes than a source may have.
    init(tooLargeFor limit: Int) {
        self.init(.tooLarge, "more than \(limit) bytes, the limit sources.maximumBytes")
    }
}

/// What loading one source may cost, and where it may come from.
public struct SourceOptions: Sendable {
    /// Which addresses may be dialled.
    public var policy = AddressPolicy()
    /// Folders under which files may be read, as absolute paths.
    public var fileRoots: [String] = []
    /// Bytes of the largest source.
    public var maximumBytes = 32 << 20
    /// For the name, the connection and TLS of each request.
    public var connectTimeout = Duration.seconds(5)
    /// For the whole transfer of each request.
    public var timeout = Duration.seconds(30)
    /// For how long fewer than 64 bytes a second may come.
    public var stallTimeout = Duration.seconds(10)
    /// Redirects that are followed.
    public var maximumRedirects = 5
    /// How often the rest of a response is asked for that broke off.
    public var resumptions = 3
    /// Who Halcyon is to origins that ask.
    public var credentials: [Origin: OriginCredentials] = [:]
    /// How Halcyon names itself to origins.
    public var userAgent = "Halcyon"

    /// Where `s3:` sources are.
    public var s3 = S3Options()
    /// What frames of videos may cost.
    public var video = VideoOptions()

    /// Bytes that watermarks and other pictures beside the jobs' own may take in memory while they are fresh.
    public var sharedBytes = 32 << 20

    /// The defaults.
    public init() {}
}
