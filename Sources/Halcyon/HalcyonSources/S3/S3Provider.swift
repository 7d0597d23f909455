import Curl
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
        let response = try await get(object, unless: known?.etag)
        switch response.status {
        case 200: return .loaded(LoadedSource(response))
        case 304 where known?.etag != nil:
            return .notModified(.init(headers: response.headers, completedAt: Timestamp.now.seconds))
        default: throw JobError(store: response, object)
        }
    }

    private func get(_ object: S3Source, unless etag: String?) async throws -> HTTPResponse {
        try await web.download(
            try options.url(of: object), isTrusted: options.endpoint != nil, unlike: Validators(etag: etag),
            continuing: .ifMatch
        ) { request in
            guard let credentials = options.credentials else { return }
            // libcurl 7.88 does not send this header, which Amazon requires.
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

/// The S3-compatible store of `s3:` sources, and the credentials for it.
public struct S3Options: Sendable {
    /// The position of the bucket name in a URL.
    public enum Style: String, CaseIterable, Sendable {
        /// In the host name at Amazon, in the path elsewhere.
        case auto
        /// `https://store/bucket/key`.
        case path
        /// `https://bucket.store/key`.
        case virtual
    }

    /// The credentials that sign requests.
    public struct Credentials: Sendable {
        /// The access key id.
        public var accessKey: String
        /// The secret access key.
        public var secretKey: String
        /// The session token of temporary credentials; nil for permanent ones.
        public var sessionToken: String?

        /// Creates credentials.
        public init(accessKey: String, secretKey: String, sessionToken: String? = nil) {
            self.accessKey = accessKey
            self.secretKey = secretKey
            self.sessionToken = sessionToken
        }
    }

    /// The URL of the store, optionally with a path prefix; nil for Amazon's endpoint of the region. An explicit
    /// endpoint may have a private address.
    public var endpoint: WebURL?
    /// The region that requests are signed for.
    public var region = "us-east-1"
    /// The credentials; nil for unsigned requests to public buckets.
    public var credentials: Credentials?
    /// The position of the bucket name in a URL.
    public var style = Style.auto

    /// Creates options for unsigned requests to Amazon S3.
    public init() {}
}

extension S3Options {
    /// Returns the URL of an object.
    /// - Throws: ``JobError`` `invalid_job` for a bucket name that is not valid in a host name.
    func url(of object: S3Source) throws(JobError) -> WebURL {
        let base = endpoint?.canonical ?? "https://s3.\(region).amazonaws.com/"
        let path = PercentEncoding.encode(object.key, keeping: "/") + (object.version.map { "?versionId=\($0)" } ?? "")
        let slash = base.utf8.last == UInt8(ascii: "/") ? "" : "/"
        guard isVirtual(object.bucket), let hostStart = base.firstRange(of: "://")?.upperBound else {
            return try WebURL("\(base)\(slash)\(object.bucket)/\(path)")
        }
        return try WebURL("\(base[..<hostStart])\(object.bucket).\(base[hostStart...])\(slash)\(path)")
    }

    private func isVirtual(_ bucket: String) -> Bool {
        switch style {
        case .path: false
        case .virtual: true
        // Wildcard certificates do not match a bucket name that contains a dot.
        case .auto: endpoint == nil && !bucket.contains(".")
        }
    }
}

extension JobError {
    /// Creates the error for a response without an object, from its error code (Amazon S3 API Reference, Error
    /// responses) or else from its status.
    init(store response: HTTPResponse, _ object: S3Source) {
        let code = response.errorCode
        let message = "the object store returned \(response.status)\(code.map { " \($0)" } ?? "") for \(object.text)"
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

extension HTTPResponse {
    /// The content of the first `Code` element in the XML of an error.
    fileprivate var errorCode: String? {
        let text = String(decoding: body.prefix(4096), as: UTF8.self)
        guard let start = text.firstRange(of: "<Code>")?.upperBound,
            let end = text[start...].firstRange(of: "</Code>")?.lowerBound
        else { return nil }
        let code = text[start..<end]
        return (1...64).contains(code.utf8.count) && code.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f }
            ? String(code) : nil
    }
}
