import Curl
import Formats
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

/// Which S3-compatible store `s3:` sources are in, and how to get in there.
public struct S3Options: Sendable {
    /// How a URL says which bucket is meant.
    public enum Style: String, CaseIterable, Sendable {
        /// As the first part of the host at Amazon, as the first part of the path elsewhere.
        case auto
        /// `https://store/bucket/key`.
        case path
        /// `https://bucket.store/key`.
        case virtual
    }

    /// What signs requests.
    public struct Credentials: Sendable {
        /// The name of the key.
        public var accessKey: String
        /// What only its owner and the store know.
        public var secretKey: String
        /// What goes with keys that are lent for a while.
        public var sessionToken: String?

        /// Takes the values as they are.
        public init(accessKey: String, secretKey: String, sessionToken: String? = nil) {
            self.accessKey = accessKey
            self.secretKey = secretKey
            self.sessionToken = sessionToken
        }
    }

    /// The store's address, perhaps with a path before all buckets; nil for Amazon's of the region. What the operator names
    /// here need not have a public address.
    public var endpoint: WebURL?
    /// The region that requests are signed for.
    public var region = "us-east-1"
    /// nil for requests without a signature, as public buckets take them.
    public var credentials: Credentials?
    /// How a URL says which bucket is meant.
    public var style = Style.auto

    /// Amazon's, unsigned.
    public init() {}
}

extension S3Options {
    /// Where an object is.
    /// - Throws: ``Failure`` `invalid_job` for a bucket whose name makes no host.
    func url(of object: S3Source) throws(Failure) -> WebURL {
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
        // No certificate is good for a bucket with a dot in its name.
        case .auto: endpoint == nil && !bucket.contains(".")
        }
    }
}

extension Failure {
    /// What a store's answer without an object means for a job: by its error code (Amazon S3 API Reference, Error
    /// responses), else by its status.
    init(store response: HTTPResponse, _ object: S3Source) {
        let code = response.errorCode
        let message = "the store answered \(response.status)\(code.map { " \($0)" } ?? "") for \(object.text)"
        switch code {
        case "NoSuchKey", "NoSuchBucket", "NoSuchVersion": self.init(.notFound, message)
        case "AccessDenied", "AllAccessDisabled", "InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken",
            "ExpiredToken", "RequestTimeTooSkewed", "InvalidObjectState":
            self.init(.forbidden, message)
        case "SlowDown", "RequestTimeout", "InternalError", "ServiceUnavailable":
            self.init(.httpError, message, isRetryable: true, retryAfter: Failure(response).retryAfter)
        case "PermanentRedirect", "TemporaryRedirect", "AuthorizationHeaderMalformed":
            let region = response.headers.first("x-amz-bucket-region").map { ", which is \($0)" } ?? ""
            self.init(
                .providerError, "\(message); sources.s3.region must be the bucket's\(region)",
                isRetryable: code == "TemporaryRedirect")
        default:
            self.init(response)
            // Of a version that is a mark of a deletion.
            if response.status == 405 { self.code = .gone }
            self.message = message
        }
        forbidsStaleUse = isRetryable && !response.allowsStaleUse
    }
}

extension HTTPResponse {
    /// What stands in the first element `Code` of an error's XML.
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
