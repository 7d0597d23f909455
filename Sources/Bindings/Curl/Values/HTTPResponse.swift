import Formats

/// The number of bytes of a response's body that may be held in memory.
public struct HTTPAdmission: Sendable {
    /// The number of bytes that may be held from the start.
    public let bytes: Int
    /// Waits until at least `bytes` may be held, and returns the number that may. The transfer is paused meanwhile, and
    /// its timeouts are suspended. The function is cancelled when the transfer ends, and must throw then.
    public let more: @Sendable (_ bytes: Int) async throws -> Int

    /// Creates an admission from an initial number and a function that requests more.
    public init(bytes: Int, more: @escaping @Sendable (_ bytes: Int) async throws -> Int) {
        self.bytes = bytes
        self.more = more
    }
}

/// The progress of a response.
public struct HTTPProgress: Hashable, Sendable {
    /// The status code of the response.
    public var status: Int
    /// The number of bytes of the body received so far, after decompression.
    public var received: Int
    /// The number of bytes of the whole body; nil if the peer does not specify it, or sends it compressed.
    public var expected: Int?

    /// Creates a progress report.
    public init(status: Int, received: Int, expected: Int?) {
        self.status = status
        self.received = received
        self.expected = expected
    }
}

/// A response: the last one, if there were redirects.
public struct HTTPResponse: Hashable, Sendable {
    /// The status code. Codes of 400 and above are responses too, not errors.
    public var status: Int
    /// The header fields, without trailers.
    public var headers: HTTPFields
    /// The body, decompressed.
    public var body: [UInt8]
    /// The URL of the last request, after redirects.
    public var effectiveURL: String
    /// The absolute target URL of a redirect that was not followed.
    public var redirectURL: String?
    /// The address of the peer; nil if libcurl does not know it.
    public var remoteAddress: SocketAddress?
    /// The durations of the steps of the transfer.
    public var timings: Timings

    /// Creates a response without an origin and timings.
    public init(status: Int, headers: HTTPFields = HTTPFields(), body: [UInt8] = []) {
        self.init(
            status: status, headers: headers, body: body, effectiveURL: "", redirectURL: nil, remoteAddress: nil,
            timings: Timings(nameLookup: .zero, connect: .zero, tls: .zero, firstByte: .zero, total: .zero))
    }

    init(
        status: Int, headers: HTTPFields, body: [UInt8], effectiveURL: String, redirectURL: String?,
        remoteAddress: SocketAddress?, timings: Timings
    ) {
        self.status = status
        self.headers = headers
        self.body = body
        self.effectiveURL = effectiveURL
        self.redirectURL = redirectURL
        self.remoteAddress = remoteAddress
        self.timings = timings
    }

    /// The times at which the steps were completed, counted from the start of the transfer. With redirects, the steps
    /// of all requests add up.
    public struct Timings: Hashable, Sendable {
        /// The completion of the DNS lookup.
        public var nameLookup: Duration
        /// The establishment of the connection.
        public var connect: Duration
        /// The completion of the TLS handshake; zero without TLS or on a reused connection.
        public var tls: Duration
        /// The arrival of the first byte of the response.
        public var firstByte: Duration
        /// The end of the transfer.
        public var total: Duration
    }
}
