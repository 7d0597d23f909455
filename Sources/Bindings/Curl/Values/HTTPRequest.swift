import Formats

/// An HTTP request, with its limits on time and size.
///
/// Only http and https are allowed, also after redirects. There are no cookies, no proxies and no netrc. On a redirect
/// to another host libcurl drops `Authorization` and `Cookie`, and sends other headers.
public struct HTTPRequest: Hashable, Sendable {
    /// The HTTP methods.
    public enum Method: String, Hashable, Sendable {
        /// Requests a response with a body.
        case get = "GET"
        /// Requests a response without a body.
        case head = "HEAD"
        /// Sends the body.
        case post = "POST"
        /// Sends the body.
        case put = "PUT"
        /// Sends no body.
        case delete = "DELETE"
        /// Removes a response, or responses with tags, from a cache such as Varnish. Sends no body.
        case purge = "PURGE"
        /// Makes responses in a cache invalid. Sends no body.
        case ban = "BAN"
    }

    /// The threshold below which a transfer counts as stalled.
    public struct Stall: Hashable, Sendable {
        /// The minimum number of bytes per second.
        public var bytesPerSecond: Int
        /// The time for which the rate must be below the minimum, in whole seconds, at least one.
        public var duration: Duration

        /// Creates a threshold from a rate and a duration.
        public init(bytesPerSecond: Int, for duration: Duration) {
            self.bytesPerSecond = bytesPerSecond
            self.duration = duration
        }
    }

    /// The credentials and the scope for signing a request with AWS Signature Version 4.
    ///
    /// The signature covers the method, the path and the query as written in the URL, `Host`, the time, and all headers
    /// that the request sets itself. A session token is such a header, `x-amz-security-token`.
    public struct Signature: Hashable, Sendable {
        /// The access key ID.
        public var accessKey: String
        /// The secret access key.
        public var secretKey: String
        /// The region, such as `eu-central-1`.
        public var region: String
        /// The service, such as `s3`.
        public var service: String

        /// Creates a signature from an access key and its scope.
        public init(accessKey: String, secretKey: String, region: String, service: String) {
            self.accessKey = accessKey
            self.secretKey = secretKey
            self.region = region
            self.service = service
        }
    }

    /// The absolute URL, percent-encoded.
    public var url: String
    /// The HTTP method.
    public var method: Method
    /// The headers to send in addition to those that libcurl sets itself.
    public var headers: HTTPFields
    /// The body to send with POST and PUT.
    public var body: [UInt8]
    /// The signature of the request; nil for an unsigned request.
    public var signature: Signature?
    /// The timeout of DNS lookup, connection and TLS handshake, for each connection.
    public var connectTimeout: Duration = .seconds(10)
    /// The timeout of the whole transfer, including redirects.
    public var timeout: Duration = .seconds(60)
    /// The threshold at which a stalled transfer fails; nil for never.
    public var stall: Stall? = Stall(bytesPerSecond: 64, for: .seconds(15))
    /// The maximum size of the body, counted as it arrives and after decompression, regardless of Content-Length.
    public var maxBytes = 64 << 20
    /// The maximum number of redirects to follow. With 0 the redirect itself is the response.
    public var maxRedirects = 5
    /// True if the peer may compress the body, which is returned decompressed. The headers `Content-Encoding` and
    /// `Content-Length` are retained, and describe the compressed body.
    public var acceptsCompression = true

    /// Creates a request with the default limits.
    public init(_ method: Method = .get, _ url: String, headers: HTTPFields = HTTPFields(), body: [UInt8] = []) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
    }
}

extension HTTPRequest {
    /// Checks the request for values that must not be sent.
    /// - Throws: ``CurlError/Code/badURL``, ``CurlError/Code/unsupportedScheme`` or ``CurlError/Code/badRequest``.
    func check() throws(CurlError) {
        guard !url.isEmpty, !url.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7f }) else {
            throw CurlError(.badURL, "the URL is empty or contains spaces or control characters")
        }
        guard let colon = url.firstIndex(of: ":") else { throw CurlError(.badURL, "the URL has no scheme") }
        guard ["http", "https"].contains(url[..<colon].lowercased()) else {
            throw CurlError(.unsupportedScheme, "the URL scheme must be http or https")
        }
        guard url[colon...].hasPrefix("://") else { throw CurlError(.badURL, "the URL has no //host") }
        if let signature {
            for part in [signature.region, signature.service] where !part.isToken {
                throw CurlError(.badRequest, "invalid region or service to sign for: \(part.debugDescription)")
            }
        }
        for field in headers.fields {
            guard field.name.isToken else {
                throw CurlError(.badRequest, "invalid header name: \(field.name.debugDescription)")
            }
            guard !field.value.utf8.contains(where: { [0, 10, 13].contains($0) }) else {
                throw CurlError(.badRequest, "the value of \(field.name) contains a line break or a zero byte")
            }
            guard !Self.framing.contains(field.name.lowercased()) else {
                throw CurlError(.badRequest, "\(field.name) cannot be set; it follows from the body")
            }
        }
    }

    /// The headers that delimit a message. Setting them manually would allow request smuggling.
    private static let framing: Set = ["content-length", "transfer-encoding"]
}
