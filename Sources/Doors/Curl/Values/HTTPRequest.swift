import Formats

/// What to ask for, and how much of time and bytes it may cost.
///
/// Only http and https are spoken, also after redirects. There are no cookies, no proxies, no netrc. On a redirect to another
/// host libcurl leaves out `Authorization` and `Cookie`; other headers go along.
public struct HTTPRequest: Hashable, Sendable {
    /// The methods.
    public enum Method: String, Hashable, Sendable {
        /// A response with a body.
        case get = "GET"
        /// A response without one.
        case head = "HEAD"
        /// Sends the body.
        case post = "POST"
        /// Sends the body.
        case put = "PUT"
        /// Sends no body.
        case delete = "DELETE"
    }

    /// Too slow for too long.
    public struct Stall: Hashable, Sendable {
        /// Fewer bytes a second than this…
        public var bytesPerSecond: Int
        /// …for so long; counted in whole seconds, at least one.
        public var duration: Duration

        /// A stall is less than so much for so long.
        public init(bytesPerSecond: Int, for duration: Duration) {
            self.bytesPerSecond = bytesPerSecond
            self.duration = duration
        }
    }

    /// Who signs a request, and for which service of whose: AWS Signature Version 4.
    ///
    /// Signed are the method, the path and the query as they stand in the URL, `Host`, the time, and all headers that the
    /// request sets itself. A session token is such a header, `x-amz-security-token`.
    public struct Signature: Hashable, Sendable {
        /// The name of the key.
        public var accessKey: String
        /// What only its owner and the service know.
        public var secretKey: String
        /// Such as `eu-central-1`.
        public var region: String
        /// Such as `s3`.
        public var service: String

        /// Takes the values as they are.
        public init(accessKey: String, secretKey: String, region: String, service: String) {
            self.accessKey = accessKey
            self.secretKey = secretKey
            self.region = region
            self.service = service
        }
    }

    /// The absolute URL, percent-encoded.
    public var url: String
    /// The method.
    public var method: Method
    /// Sent beside those that libcurl sets itself.
    public var headers: HTTPFields
    /// What POST and PUT send.
    public var body: [UInt8]
    /// Signs the request; nil sends it as it is.
    public var signature: Signature?
    /// For looking up the name, connecting and TLS, for each connection.
    public var connectTimeout: Duration = .seconds(10)
    /// For everything, redirects included.
    public var timeout: Duration = .seconds(60)
    /// When to give up a peer that hardly moves; nil for never.
    public var stall: Stall? = Stall(bytesPerSecond: 64, for: .seconds(15))
    /// The largest body to take, counted as it comes in and after decompression, whatever Content-Length says.
    public var maxBytes = 64 << 20
    /// How many redirects to follow. With 0 the redirect itself is the response.
    public var maxRedirects = 5
    /// Whether the peer may compress the body; it is given out decompressed. `Content-Encoding` and `Content-Length` stay among
    /// the headers and speak of what was sent.
    public var acceptsCompression = true

    /// A request with the default limits.
    public init(_ method: Method = .get, _ url: String, headers: HTTPFields = HTTPFields(), body: [UInt8] = []) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
    }
}

extension HTTPRequest {
    /// Looks for what must not reach the wire.
    /// - Throws: ``CurlError/Code/badURL``, ``CurlError/Code/unsupportedScheme`` or ``CurlError/Code/badRequest``.
    func check() throws(CurlError) {
        guard !url.isEmpty, !url.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7f }) else {
            throw CurlError(.badURL, "the URL is empty or holds blanks or control characters")
        }
        guard let colon = url.firstIndex(of: ":") else { throw CurlError(.badURL, "the URL has no scheme") }
        guard ["http", "https"].contains(url[..<colon].lowercased()) else {
            throw CurlError(.unsupportedScheme, "the scheme of the URL is neither http nor https")
        }
        guard url[colon...].hasPrefix("://") else { throw CurlError(.badURL, "the URL has no //host") }
        if let signature {
            for part in [signature.region, signature.service] where !part.isToken {
                throw CurlError(.badRequest, "not a region or a service to sign for: \(part.debugDescription)")
            }
        }
        for field in headers.fields {
            guard field.name.isToken else {
                throw CurlError(.badRequest, "not the name of a header: \(field.name.debugDescription)")
            }
            guard !field.value.utf8.contains(where: { [0, 10, 13].contains($0) }) else {
                throw CurlError(.badRequest, "the value of \(field.name) holds a line break or a zero")
            }
            guard !Self.framing.contains(field.name.lowercased()) else {
                throw CurlError(.badRequest, "\(field.name) is set by the body, not as a header")
            }
        }
    }

    /// Headers that say where a message ends: to set them by hand is how requests are smuggled.
    private static let framing: Set = ["content-length", "transfer-encoding"]
}
