import HalcyonModel
import PercentCoding

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
