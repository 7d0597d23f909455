import Curl
import Expat
import Formats
import HalcyonModel

/// A provider of objects in an S3-compatible store. Each fetch is one signed GET, plus range requests if it is
/// interrupted. The limits and the address policy of web sources apply.
struct S3Provider: SourceProvider {
    private let options: S3Options
    private var web: WebProvider

    /// Creates a provider.
    /// - Parameter web: The provider whose connections are used. The caller closes it.
    init(_ options: S3Options, over web: WebProvider) {
        self.options = options
        self.web = web
    }

    /// The size limit of an object, in bytes.
    var maximumBytes: Int {
        get { web.maximumBytes }
        set { web.maximumBytes = newValue }
    }

    /// The origin of the store.
    func origin(of object: S3Source) -> Origin? {
        // Errors in the URL are reported by `fetch`.
        (try? options.url(of: object)).map { Origin($0) }
    }

    /// Fetches an object.
    /// - Throws: ``JobError``; `CancellationError`.
    func fetch(_ object: S3Source, ifNoneMatch known: Validators?) async throws -> FetchResponse {
        try await fetch(object, ifNoneMatch: known, range: nil)
    }

    /// Fetches an object, or a part of it. The status of a part is 206.
    /// - Throws: ``JobError``; `CancellationError`.
    func fetch(
        _ object: S3Source, ifNoneMatch known: Validators?, range: Range<Int>?
    ) async throws -> FetchResponse {
        let response = try await get(object, unless: known?.etag, range)
        switch response.status {
        case 200, 206: return .loaded(LoadedSource(response))
        case 304 where known?.etag != nil:
            return .notModified(.init(headers: response.headers, completedAt: Timestamp.now.seconds))
        default: throw JobError(store: response, object.text)
        }
    }

    /// Lists objects. A page without objects is the last one.
    /// - Parameters:
    ///   - last: the key after which the list begins; nil for the first one.
    ///   - count: the maximum number of objects.
    /// - Throws: ``JobError``; `CancellationError`.
    func list(_ prefix: S3Prefix, after last: String?, count: Int) async throws -> S3ObjectPage {
        try await options.list(
            in: prefix.bucket, prefix: prefix.prefix, after: last, count: count, atLeast: 1,
            error: { JobError(.httpError, $0, isRetryable: true) as any Error }
        ) { (url: String) async throws -> S3ObjectPage in
            let response = try await web.download(
                try WebURL(url), isTrusted: options.endpoint != nil, unlike: Validators(), continuing: .ifMatch
            ) { request in
                request.maxBytes = Self.longestPage
                options.sign(&request)
            }
            guard response.status == 200 else { throw JobError(store: response, prefix.text) }
            do throws(XMLError) {
                return try S3ObjectPage(xml: response.body)
            } catch {
                throw JobError(.httpError, "the object store returned invalid XML: \(error)", cause: error)
            }
        }
    }

    /// The maximum size of a list of 1000 objects, in bytes. Encoded keys have 3 KiB at most.
    private static let longestPage = 8 << 20

    private func get(_ object: S3Source, unless etag: String?, _ range: Range<Int>?) async throws -> HTTPResponse {
        try await web.download(
            try options.url(of: object), isTrusted: options.endpoint != nil, unlike: Validators(etag: etag),
            continuing: .ifMatch
        ) { request in
            if let range { request.ask(for: range) }
            options.sign(&request)
        }
    }
}

extension JobError {
    /// Creates the error for a response without an object, from its error code (Amazon S3 API Reference, Error
    /// responses) or else from its status.
    init(store response: HTTPResponse, _ object: String) {
        let code = response.s3ErrorCode
        let message = "the object store returned \(response.status)\(code.map { " \($0)" } ?? "") for \(object)"
        switch code {
        case "NoSuchKey", "NoSuchBucket", "NoSuchVersion": self.init(.notFound, message)
        case "AccessDenied", "AllAccessDisabled", "InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken",
            "ExpiredToken", "RequestTimeTooSkewed", "InvalidObjectState":
            self.init(.forbidden, message)
        case "SlowDown", "RequestTimeout", "InternalError", "ServiceUnavailable":
            self.init(.httpError, message, isRetryable: true, retryAfter: JobError(response).retryAfter)
        case "PermanentRedirect", "TemporaryRedirect", "AuthorizationHeaderMalformed":
            let region = response.headers.first("x-amz-bucket-region").map { ", which is \($0)" } ?? ""
            self.init(
                .providerError, "\(message); sources.s3.region must be the bucket's\(region)",
                isRetryable: code == "TemporaryRedirect")
        default:
            self.init(response)
            // The requested version is a delete marker.
            if response.status == 405 { self.code = .gone }
            self.message = message
        }
        forbidsStaleUse = isRetryable && !response.allowsStaleUse
    }
}
