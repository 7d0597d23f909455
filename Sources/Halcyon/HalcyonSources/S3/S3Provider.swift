import CivilTime
import Curl
import HalcyonModel

/// Loads objects of an S3-compatible store: one signed GET each, and one more where it breaks off, with the web's limits and address
/// policy.
struct S3Provider: SourceProvider {
    private let options: S3Options
    private var web: WebProvider

    /// - Parameter web: whose connections are used; it stays its maker's.
    init(_ options: S3Options, over web: WebProvider) {
        self.options = options
        self.web = web
    }

    /// Bytes of the largest object.
    var maximumBytes: Int {
        get { web.maximumBytes }
        set { web.maximumBytes = newValue }
    }

    /// The store's.
    func origin(of object: S3Source) -> Origin? {
        // Fetching says what is wrong with the URL.
        (try? options.url(of: object)).map { Origin($0) }
    }

    /// - Throws: ``Failure``; `CancellationError`.
    func fetch(_ object: S3Source, ifNoneMatch known: Validators?) async throws -> FetchResponse {
        let response = try await get(object, unless: known?.etag)
        switch response.status {
        case 200: return .loaded(LoadedSource(response))
        case 304 where known?.etag != nil:
            return .notModified(.init(headers: response.headers, completedAt: Timestamp.now.seconds))
        default: throw Failure(store: response, object)
        }
    }

    private func get(_ object: S3Source, unless etag: String?) async throws -> HTTPResponse {
        try await web.download(
            try options.url(of: object), isTrusted: options.endpoint != nil, unlike: Validators(etag: etag),
            continuing: .ifMatch
        ) { request in
            guard let credentials = options.credentials else { return }
            // libcurl 7.88 signs without it, and Amazon wants it.
            request.headers["x-amz-content-sha256"] = Self.hashOfNothing
            if let token = credentials.sessionToken { request.headers["x-amz-security-token"] = token }
            request.signature = HTTPRequest.Signature(
                accessKey: credentials.accessKey, secretKey: credentials.secretKey, region: options.region,
                service: "s3")
        }
    }

    /// SHA-256 of the body of a GET.
    private static let hashOfNothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
}
