import Concurrency
import Formats
import HalcyonModel

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

    /// Creates a loader. It owns its connections, which ``close()`` ends.
    /// - Parameters:
    ///   - custom: The providers of the host program.
    ///   - pool: Threads for libvips, on which initials are drawn. The caller shuts it down.
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
        video = VideoProvider(options.video, maximumBytes: options.maximumBytes, permits: pool.width) {
            try await videos.fetch($0, ifNoneMatch: $1, range: $2)
        }
    }

    /// Fetches a source.
    /// - Parameter known: The ``LoadedSource/validators`` of the bytes that the caller has; nil if it has none.
    /// - Throws: ``JobError``; `CancellationError` when the task is cancelled, which ends the transfer.
    public func fetch(_ request: SourceRequest, ifNoneMatch known: Validators? = nil) async throws -> FetchResponse {
        try await fetch(request, ifNoneMatch: known, range: nil)
    }

    /// Fetches a source or, from the web, S3 and files, a part of it.
    private func fetch(
        _ request: SourceRequest, ifNoneMatch known: Validators?, range: Range<Int>?
    ) async throws -> FetchResponse {
        switch request.source {
        case .web(let url):
            return try await web.fetch(WebProvider.Reference(url, request.headers), ifNoneMatch: known, range: range)
        case .initials(let letters): return try await initials.fetch(letters, ifNoneMatch: known)
        case .file(let file): return try await self.file.fetch(file, ifNoneMatch: known, range: range)
        case .data(let bytes): return try await data.fetch(bytes, ifNoneMatch: known)
        case .s3(let object): return try await s3.fetch(object, ifNoneMatch: known, range: range)
        case .custom(let source): return try await fetch(source, ifNoneMatch: known)
        case .video(let frame):
            guard let video else {
                throw JobError(.invalidJob, "\(request.source.shownText) is a video frame; expected a video")
            }
            return try await video.fetch(VideoProvider.Reference(frame, request), ifNoneMatch: known)
        }
    }

    /// Fetches from a provider of the host program. An error other than ``JobError`` becomes `provider_error` with the
    /// provider's name, and so does a `CancellationError` if the task is not cancelled.
    private func fetch(_ source: CustomSource, ifNoneMatch known: Validators?) async throws -> FetchResponse {
        let provider = try custom.provider(source.name)
        do {
            let response = try await provider.fetch(source.reference, ifNoneMatch: known)
            if case .loaded(let loaded) = response, loaded.body.count > maximumBytes {
                throw JobError(tooLargeFor: maximumBytes)
            }
            return response
        } catch let failure as JobError {
            throw failure.within(source.name)
        } catch let error as CancellationError where Task.isCancelled {
            throw error
        } catch {
            throw JobError(.providerError, "\(source.name): \(error)", cause: error)
        }
    }

    /// Lists objects of an S3-compatible store, in the order of their keys. A page without objects is the last one.
    /// - Parameters:
    ///   - last: The key after which the list begins; nil for the first one.
    ///   - count: The maximum number of objects, up to 1000.
    /// - Throws: ``JobError``; `CancellationError` when the task is cancelled.
    public func list(_ prefix: S3Prefix, after last: String?, count: Int) async throws -> S3ObjectPage {
        try await s3.list(prefix, after: last, count: count)
    }

    /// Uploads a result to a URL with HTTP PUT, under the same address policy and timeouts as sources.
    /// - Parameter mediaType: The media type of the bytes, such as `image/jpeg`.
    /// - Throws: ``JobError``; `CancellationError` when the task is cancelled, which ends the transfer.
    public func put(_ body: [UInt8], mediaType: String, at url: WebURL) async throws {
        try await web.put(body, mediaType: mediaType, at: url)
    }

    /// The request fields that a source's response may depend on (RFC 9110, section 12.5.5).
    ///
    /// `Accept-Encoding` has a constant value, because the decoded bytes do not depend on it.
    func fields(of request: SourceRequest) -> HTTPFields {
        var fields: HTTPFields = [
            "User-Agent": web.options.userAgent, "Accept": "*/*", "Accept-Encoding": "any",
        ]
        for field in request.headers.fields { fields[field.name] = field.value }
        return fields
    }

    /// The origin that serves a source; nil if the source has no origin.
    func origin(of source: Source) -> Origin? {
        switch source {
        case .web(let url): Origin(url)
        case .s3(let object): s3.origin(of: object)
        case .video(let video): origin(of: video.input)
        case .initials, .file, .data, .custom: nil
        }
    }

    /// Returns a copy of the loader with another limit for the bytes of a source.
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

extension JobError {
    /// Creates the error for a source that is too large.
    init(tooLargeFor limit: Int) {
        self.init(.tooLarge, "more than \(limit) bytes, the limit set by sources.maximumBytes")
    }
}

/// Limits for loading one source, and the origins and folders that sources may come from.
public struct SourceOptions: Sendable {
    /// The policy for the addresses that may be connected to.
    public var policy = AddressPolicy()
    /// Absolute paths of the folders from which files may be read.
    public var fileRoots: [String] = []
    /// The size limit of a source, in bytes.
    public var maximumBytes = 32 << 20
    /// The timeout for DNS, connection and TLS handshake of each request.
    public var connectTimeout = Duration.seconds(5)
    /// The timeout for the whole transfer of each request.
    public var timeout = Duration.seconds(30)
    /// The time after which a transfer below 64 bytes per second is aborted.
    public var stallTimeout = Duration.seconds(10)
    /// The maximum number of redirects.
    public var maximumRedirects = 5
    /// The maximum number of range requests that resume an interrupted response.
    public var resumptions = 3
    /// Credentials for origins that require authentication.
    public var credentials: [Origin: OriginCredentials] = [:]
    /// The `User-Agent` that is sent to origins.
    public var userAgent = "Halcyon"

    /// The object store of `s3:` sources.
    public var s3 = S3Options()
    /// Limits for extracting video frames.
    public var video = VideoOptions()

    /// Memory for shared assets such as watermarks, in bytes. They are cached while they are fresh.
    public var sharedBytes = 32 << 20

    /// Creates options with default values.
    public init() {}
}
