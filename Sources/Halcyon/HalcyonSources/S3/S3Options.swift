import Curl
import Formats
import HalcyonModel
import Hashing

/// An S3-compatible store, and the credentials for it.
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

        /// Signs a request with AWS Signature Version 4.
        public func sign(_ request: inout HTTPRequest, region: String, service: String) {
            // libcurl 7.88 does not send this header, which Amazon requires, and hashes only bodies of forms.
            request.headers["x-amz-content-sha256"] = SHA256.hash(request.body).description
            if let sessionToken { request.headers["x-amz-security-token"] = sessionToken }
            request.signature = HTTPRequest.Signature(
                accessKey: accessKey, secretKey: secretKey, region: region, service: service)
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
        let path = PercentEncoding.encode(object.key, keeping: "/") + (object.version.map { "?versionId=\($0)" } ?? "")
        return try WebURL("\(url(ofBucket: object.bucket))\(path)")
    }

    /// Returns the URL of a bucket, which ends with `/`. The percent-encoded key of an object follows.
    public func url(ofBucket bucket: String) -> String {
        let base = endpoint?.canonical ?? "https://s3.\(region).amazonaws.com/"
        let slash = base.utf8.last == UInt8(ascii: "/") ? "" : "/"
        guard isVirtual(bucket), let hostStart = base.firstRange(of: "://")?.upperBound else {
            return "\(base)\(slash)\(bucket)/"
        }
        return "\(base[..<hostStart])\(bucket).\(base[hostStart...])\(slash)"
    }

    /// Signs a request, if there are credentials.
    public func sign(_ request: inout HTTPRequest) {
        credentials?.sign(&request, region: region, service: "s3")
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

extension HTTPResponse {
    /// The content of the first `Code` element in the XML of an S3 error; nil if there is none.
    public var s3ErrorCode: String? {
        let text = String(decoding: body.prefix(4096), as: UTF8.self)
        guard let start = text.firstRange(of: "<Code>")?.upperBound,
            let end = text[start...].firstRange(of: "</Code>")?.lowerBound
        else { return nil }
        let code = text[start..<end]
        return (1...64).contains(code.utf8.count) && code.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f }
            ? String(code) : nil
    }
}
