import HalcyonModel
import Threads

/// One provider for each kind of source that stands by itself.
struct Providers: Sendable {
    private var web: WebProvider
    private let initials: InitialsProvider
    private var file: FileProvider
    private let data = DataProvider()
    private var s3: S3Provider
    private let custom: CustomProviders
    private var maximumBytes: Int

    init(_ options: SourceOptions, _ custom: CustomProviders, _ pool: ThreadPool) {
        web = WebProvider(options)
        initials = InitialsProvider(pool: pool)
        file = FileProvider(roots: options.fileRoots, maximumBytes: options.maximumBytes)
        s3 = S3Provider(options.s3, over: web)
        self.custom = custom
        maximumBytes = options.maximumBytes
    }

    func close() async { await web.close() }

    /// How requests name their sender.
    var userAgent: String { web.options.userAgent }

    /// Who serves the source; nil where nobody is asked.
    func origin(of source: Source) -> Origin? {
        switch source {
        case .web(let url): Origin(url)
        case .s3(let object): s3.origin(of: object)
        case .video(let video): origin(of: video.input)
        case .initials, .file, .data, .custom: nil
        }
    }

    /// The same with another limit for the bytes of a source.
    func limited(to bytes: Int) -> Providers {
        var providers = self
        providers.web.maximumBytes = bytes
        providers.file.maximumBytes = bytes
        providers.s3.maximumBytes = bytes
        providers.maximumBytes = bytes
        return providers
    }

    /// - Parameter known: nil when there are no bytes yet.
    /// - Throws: ``Failure``, `CancellationError`.
    func load(_ request: SourceRequest, unlike known: Validators?) async throws -> SourceAnswer {
        switch request.source {
        case .web(let url): try await web.answer(WebProvider.Reference(url, request.headers), known)
        case .initials(let letters): try await initials.answer(letters, known)
        case .file(let file): try await self.file.answer(file, known)
        case .data(let bytes): try await data.answer(bytes, known)
        case .custom(let source): try await load(source, known)
        case .s3(let object): try await s3.answer(object, known)
        case .video: throw Failure(.invalidJob, "\(request.source.shownText): no video is there, but a frame of one")
        }
    }

    /// - Throws: ``Failure``, `CancellationError`.
    func put(_ body: [UInt8], mediaType: String, at url: WebURL) async throws {
        try await web.put(body, mediaType: mediaType, at: url)
    }

    /// Loads what a provider of the host program has. Whatever it throws becomes a failure that names it.
    private func load(_ source: CustomSource, _ known: Validators?) async throws -> SourceAnswer {
        let provider = try custom.provider(source.name)
        do {
            let answer = try await provider.answer(source.reference, known)
            if case .loaded(let loaded) = answer, loaded.body.count > maximumBytes {
                throw Failure(tooLargeFor: maximumBytes)
            }
            return answer
        } catch let failure as Failure {
            throw failure.within(source.name)
        } catch let error as CancellationError {
            throw error
        } catch {
            throw Failure(.providerError, "\(source.name): \(error)")
        }
    }
}

extension SourceProvider {
    /// - Parameter known: nil when there are no bytes yet.
    func answer(_ reference: Reference, _ known: Validators?) async throws -> SourceAnswer {
        if let known { return try await load(reference, unlike: known) }
        return .loaded(try await load(reference))
    }
}

extension Failure {
    /// More bytes than a source may have.
    init(tooLargeFor limit: Int) {
        self.init(.tooLarge, "more than \(limit) bytes, the limit sources.maximumBytes")
    }
}
