import CMicroHTTP
import Formats

extension HTTPServer {
    /// A handler's response.
    ///
    /// The server sets `Date`, `Content-Length`, `Transfer-Encoding` and `Connection`. HEAD requests get the headers of
    /// the same response without its body.
    public struct Response: Sendable {
        /// The body of a response.
        public enum Body: Sendable {
            /// No body. A length of 0 is sent if the status allows a body.
            case none
            /// These bytes.
            case bytes([UInt8])
            /// A body that the closure writes while it is sent. With a length, the closure must write exactly that
            /// number of bytes; without one, the body is chunked. If the closure throws, the connection is cut, so that
            /// the client sees an incomplete body. The closure does not run for HEAD and for statuses without a body.
            case stream(length: Int?, @Sendable (BodyWriter) async throws -> Void)
        }

        /// The status, from 200 to 599.
        public var status: Int
        /// The header fields.
        public var headers: HTTPFields
        /// The body.
        public var body: Body
        /// True if the connection is closed after the response.
        public var closesConnection = false

        /// Creates a response.
        public init(status: Int, headers: HTTPFields = HTTPFields(), body: Body = .none) {
            self.status = status
            self.headers = headers
            self.body = body
        }

        /// Creates a response with a short plain text.
        public init(status: Int, text: String) {
            self.init(
                status: status, headers: ["Content-Type": "text/plain; charset=utf-8"], body: .bytes(Array(text.utf8)))
        }

        /// True if the response cannot be sent because its status or headers are invalid.
        var isUnsendable: Bool {
            !(200...599).contains(status)
                || headers.fields.contains { field in
                    !field.name.isToken || !field.value.isFieldValue || Self.framing.contains(where: field.name.isSame)
                }
        }

        /// Headers that frame a message. The server sets them.
        private static let framing = ["Connection", "Content-Length", "Date", "Transfer-Encoding"]
    }

    /// Writes the body of a response as a stream.
    public struct BodyWriter: Sendable {
        private let exchange: HTTPTransaction

        init(_ exchange: HTTPTransaction) { self.exchange = exchange }

        /// Sends bytes, and waits while more than ``Limits/queuedBytes`` are queued for the client (backpressure). An
        /// empty array sends no chunk.
        /// - Throws: ``BodyError/connectionLost`` if the client has disconnected, has not read for
        ///   ``Limits/stallTime``, or the server stops. The task is cancelled then, too.
        public func write(_ bytes: [UInt8]) async throws(BodyError) { try await exchange.write(bytes) }
    }
}

extension HTTPServer {
    /// The result of a request handler.
    public enum HandlerResult: Sendable {
        /// A response that is sent immediately, on the server's thread.
        case immediate(Response)
        /// A response that is sent immediately and shared by many requests.
        case cached(SharedResponse)
        /// A closure that produces the response in a task. An error that it throws is answered with 500, and
        /// ``BodyError/tooLarge(limit:)`` with 413.
        case deferred(@Sendable () async throws -> Response)
    }
}

extension HTTPServer {
    /// A response to many requests. Its headers are validated once, and it is converted to libmicrohttpd's form once.
    ///
    /// `@unchecked Sendable`: libmicrohttpd counts the references to its response under a lock, and the response is
    /// never changed after it is created.
    public final class SharedResponse: @unchecked Sendable {
        /// Maximum size of the body in bytes.
        public static let mostBytes = ResponseBodyBuffer.wholeLimit
        /// The original response.
        let response: Response
        private let handle: OpaquePointer

        /// The status.
        public var status: Int { response.status }

        /// Creates a shared response. Nil if the response serves a single request (a stream, or a body that is too long
        /// to be handed over as a whole) or cannot be sent.
        public init?(_ response: Response) {
            guard !response.isUnsendable, !response.closesConnection else { return nil }
            let body: [UInt8]
            switch response.body {
            case .none: body = []
            case .bytes(let bytes): body = bytes
            case .stream: return nil
            }
            guard body.count <= Self.mostBytes, let handle = NativeResponse.whole(body) else { return nil }
            NativeResponse.add(response.headers, to: handle)
            (self.response, self.handle) = (response, handle)
        }

        deinit { MHD_destroy_response(handle) }

        /// Queues the response. Returns `MHD_NO`, which closes the connection, if that fails.
        func queue(on connection: OpaquePointer) -> MHD_Result {
            MHD_queue_response(connection, UInt32(clamping: response.status), handle)
        }
    }
}
