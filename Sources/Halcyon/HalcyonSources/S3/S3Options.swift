import Curl
import Expat
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

    /// Lists objects in the order of their keys (Amazon S3 API Reference, ListObjectsV2).
    ///
    /// A store may return fewer objects than requested, and even none, although more follow.
    /// - Parameters:
    ///   - prefix: the beginning of their keys.
    ///   - last: the key after which the list begins; nil for the first one.
    ///   - count: the maximum number of objects, up to 1000.
    ///   - least: the number of objects up to which the list is continued if more follow.
    ///   - error: returns the error for a list that cannot be continued.
    ///   - get: requests a part of the list by its URL.
    /// - Throws: the errors of `error` and `get`.
    public func list<Failure: Error>(
        in bucket: String, prefix: String, after last: String?, count: Int, atLeast least: Int,
        error: (_ message: String) -> Failure, get: (_ url: String) async throws(Failure) -> S3ObjectPage
    ) async throws(Failure) -> S3ObjectPage {
        var objects: [S3ObjectPage.Object] = []
        var continuation: String?
        while true {
            let part = try await get(
                url(
                    ofObjectsIn: bucket, prefix: prefix, after: last, continuing: continuation,
                    count: count - objects.count))
            objects += part.objects
            guard part.isTruncated, objects.count < least else {
                return S3ObjectPage(objects, isTruncated: part.isTruncated, continuation: part.continuation)
            }
            guard let next = part.continuation, next != continuation else {
                throw error("the object store returned a part of a list that cannot be continued")
            }
            continuation = next
        }
    }

    /// Returns the URL of a part of a list. The token of the part before takes precedence over `last`.
    private func url(
        ofObjectsIn bucket: String, prefix: String, after last: String?, continuing continuation: String?, count: Int
    ) -> String {
        // Sorted, because the signature covers the query as it is written (libcurl 7.88). Keys are encoded, because XML
        // cannot represent all of their characters.
        var query = "encoding-type=url&list-type=2&max-keys=\(count)&prefix=\(PercentEncoding.encode(prefix))"
        if let continuation {
            query = "continuation-token=\(PercentEncoding.encode(continuation))&\(query)"
        } else if let last {
            query += "&start-after=\(PercentEncoding.encode(last))"
        }
        return "\(url(ofBucket: bucket))?\(query)"
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

extension S3ObjectPage {
    /// Decodes the response to a list of objects.
    /// - Throws: `XMLError` if it is not XML.
    public init(xml: [UInt8]) throws(XMLError) {
        let list = try XMLElement(document: xml)
        let isEncoded = list["EncodingType"]?.text == "url"
        let objects = list.children.compactMap { element -> Object? in
            guard element.name == "Contents", let text = element["Key"]?.text else { return nil }
            let bytes = isEncoded ? PercentEncoding.decode(text.utf8, plusIsSpace: true) : Array(text.utf8)
            guard let key = bytes.flatMap({ String(validating: $0, as: UTF8.self) }) else { return nil }
            return Object(
                key: key, bytes: element["Size"].flatMap { Int($0.text) } ?? 0,
                changedAt: element["LastModified"].flatMap { Timestamp(rfc3339: $0.text)?.seconds } ?? 0)
        }
        self.init(
            objects, isTruncated: list["IsTruncated"]?.text == "true",
            continuation: list["NextContinuationToken"]?.text)
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
