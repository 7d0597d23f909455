import Formats

/// The number of bytes of a response's body that may be held in memory.
public struct HTTPAdmission: Sendable {
    /// The number that may be held from the start.
    public let bytes: Int
    /// Waits until at least so many may be held, and returns how many that are. The transfer is paused meanwhile, and
    /// its time limits do not pass. It is cancelled when the transfer ends, and throws then.
    public let more: @Sendable (_ bytes: Int) async throws -> Int

    /// Takes the values as they are.
    public init(bytes: Int, more: @escaping @Sendable (_ bytes: Int) async throws -> Int) {
        self.bytes = bytes
        self.more = more
    }
}

/// How much of a response has come.
public struct HTTPProgress: Hashable, Sendable {
    /// The response's status code.
    public var status: Int
    /// Bytes of its body so far, decompressed.
    public var received: Int
    /// Bytes of its whole body; nil where the peer does not say, or sends it compressed.
    public var expected: Int?

    /// Takes the values as they are.
    public init(status: Int, received: Int, expected: Int?) {
        self.status = status
        self.received = received
        self.expected = expected
    }
}

/// A response: the last one, where there were redirects.
public struct HTTPResponse: Hashable, Sendable {
    /// The status code. Codes of 400 and above are responses too, not errors.
    public var status: Int
    /// Its header fields, without trailers.
    public var headers: HTTPFields
    /// Its body, decompressed.
    public var body: [UInt8]
    /// The URL it came from in the end.
    public var effectiveURL: String
    /// Where it redirects to, as an absolute URL, when it is a redirect that was not followed.
    public var redirectURL: String?
    /// Who sent it; nil where libcurl does not know.
    public var remoteAddress: SocketAddress?
    /// What took how long.
    public var timings: Timings

    /// A response of these parts; where it came from and how long it took is not known.
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

    /// When what was done, counted from the start of the transfer. With redirects the steps of all requests add up.
    public struct Timings: Hashable, Sendable {
        /// The name was looked up.
        public var nameLookup: Duration
        /// The connection was there.
        public var connect: Duration
        /// TLS was agreed upon; zero without TLS or on a connection used again.
        public var tls: Duration
        /// The first byte of the response came.
        public var firstByte: Duration
        /// All of it had come.
        public var total: Duration
    }
}
