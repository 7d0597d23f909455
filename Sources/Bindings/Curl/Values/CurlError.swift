/// The reason for which a transfer has no response.
public struct CurlError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kinds of failure.
    public enum Code: Hashable, Sendable {
        /// The URL is malformed.
        case badURL
        /// A header is malformed, or may not be set.
        case badRequest
        /// The URL, or that of a redirect, is neither http nor https.
        case unsupportedScheme
        /// The host has no address, or the DNS lookup failed.
        case nameNotResolved
        /// No connection to any of the host's addresses could be established.
        case cannotConnect
        /// The client's address filter rejected the host's addresses.
        case refusedAddress
        /// The TLS handshake failed, or the certificate is not valid for the host.
        case tls
        /// A timeout has expired.
        case timeout(Limit)
        /// The body is larger than the request allows.
        case tooLarge
        /// There were more redirects than the request allows.
        case tooManyRedirects
        /// The peer closed the connection, or ended the HTTP/2 stream, before the response was complete.
        case interrupted
        /// The response is not valid HTTP, or its content encoding is invalid.
        case protocolError
        /// The task was cancelled.
        case cancelled
        /// The client is closed.
        case closed
        /// Any other error that libcurl reports, such as a lack of memory.
        case other
    }

    /// The timeouts of a request.
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
    /// The error text, from libcurl if it provides one.
    public let message: String
    /// The part of the response that was received before a failure: its head and a part of its body.
    public internal(set) var partial: HTTPResponse?

    /// The status of the response, if its head was received.
    public internal(set) var status: Int?

    /// Creates an error of a kind.
    public init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// True if the same request may succeed when it is sent again later.
    public var isRetriable: Bool {
        switch code {
        case .nameNotResolved, .cannotConnect, .timeout, .interrupted, .protocolError: true
        case .badURL, .badRequest, .unsupportedScheme, .refusedAddress, .tls, .tooLarge, .tooManyRedirects, .cancelled,
            .closed, .other:
            false
        }
    }

    /// The message of the error.
    public var description: String { message }

    /// The error for calls to a closed client.
    static let closed = CurlError(.closed, "the client is closed")
    /// The error for a cancelled task.
    static let cancelled = CurlError(.cancelled, "the task was cancelled")
}
