/// Why a transfer gave no response.
public struct CurlError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kinds of failure.
    public enum Code: Hashable, Sendable {
        /// The URL cannot be read.
        case badURL
        /// A header is not one, or may not be set.
        case badRequest
        /// The URL, or a redirect's, is neither http nor https.
        case unsupportedScheme
        /// The host has no address, or its name could not be looked up.
        case nameNotResolved
        /// Nobody answers at the host's addresses.
        case cannotConnect
        /// The client's filter let none of the host's addresses through that could be tried.
        case refusedAddress
        /// The handshake failed, or the certificate is not good for the host.
        case tls
        /// A time limit has passed.
        case timeout(Limit)
        /// The body is larger than the request allows.
        case tooLarge
        /// More redirects than the request allows.
        case tooManyRedirects
        /// The peer closed the connection before the response was complete.
        case interrupted
        /// What the peer sent is not HTTP, or not in the encoding that it names.
        case protocolError
        /// The task was cancelled.
        case cancelled
        /// The client is closed.
        case closed
        /// Anything else that libcurl reports, such as memory.
        case other
    }

    /// The time limits of a request.
    public enum Limit: Hashable, Sendable {
        /// ``HTTPRequest/connectTimeout``.
        case connect
        /// ``HTTPRequest/timeout``.
        case transfer
        /// ``HTTPRequest/stall``.
        case stall
    }

    /// The kind of failure.
    public let code: Code
    /// What happened, in libcurl's words where it has some.
    public let message: String
    /// The response as far as it had come, where its end is missing: its head, and a part of the body.
    public internal(set) var partial: HTTPResponse?

    /// The status of the response, where its head had come.
    public internal(set) var status: Int?

    /// An error of this kind.
    public init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// Whether the same request may succeed when it is made again in a while.
    public var isRetriable: Bool {
        switch code {
        case .nameNotResolved, .cannotConnect, .timeout, .interrupted: true
        case .badURL, .badRequest, .unsupportedScheme, .refusedAddress, .tls, .tooLarge, .tooManyRedirects,
            .protocolError,
            .cancelled, .closed, .other:
            false
        }
    }

    /// The message.
    public var description: String { message }

    /// What callers of a closed client are told.
    static let closed = CurlError(.closed, "the client is closed")
    /// What callers are told whose task was cancelled.
    static let cancelled = CurlError(.cancelled, "the task was cancelled")
}
