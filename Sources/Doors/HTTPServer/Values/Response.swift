import CMicroHTTP
import Formats

extension HTTPServer {
    /// What a handler answers.
    ///
    /// `Date`, `Content-Length`, `Transfer-Encoding` and `Connection` are set by the door. HEAD is answered with the headers of
    /// the same response, its body left out.
    public struct Response: Sendable {
        /// The body of a response.
        public enum Body: Sendable {
            /// None, which is told by a length of 0 where the status has a body at all.
            case none
            /// These bytes.
            case bytes([UInt8])
            /// What the closure writes, sent while it is written. With a length it has to write exactly that many bytes;
            /// without one it is chunked. An error that it throws cuts the connection, so that the client sees that the end is
            /// missing. It does not run for HEAD, and for statuses without a body.
            case stream(length: Int?, @Sendable (BodyWriter) async throws -> Void)
        }

        /// The status, from 200 to 599.
        public var status: Int
        /// Its header fields.
        public var headers: HTTPFields
        /// Its body.
        public var body: Body
        /// Whether the connection is closed behind it.
        public var closesConnection = false

        /// A response of these parts.
        public init(status: Int, headers: HTTPFields = HTTPFields(), body: Body = .none) {
            self.status = status
            self.headers = headers
            self.body = body
        }

        /// A short plain text.
        public init(status: Int, text: String) {
            self.init(
                status: status, headers: ["Content-Type": "text/plain; charset=utf-8"], body: .bytes(Array(text.utf8)))
        }

        /// What the door has no way to send: a status that is no answer, or headers that are none.
        var isUnsendable: Bool {
            !(200...599).contains(status)
                || headers.fields.contains { field in
                    !field.name.isToken || !field.value.isFieldValue || Self.framing.contains(where: field.name.isSame)
                }
        }

        /// Headers that say where a message ends: the door sets them.
        private static let framing = ["Connection", "Content-Length", "Date", "Transfer-Encoding"]
    }

    /// Takes the body of a response while it is written.
    public struct BodyWriter: Sendable {
        private let exchange: Exchange

        init(_ exchange: Exchange) { self.exchange = exchange }

        /// Sends bytes, and waits while more than ``Limits/queuedBytes`` lie between here and the client. No bytes are no chunk.
        /// - Throws: ``BodyError/connectionLost`` when the client has left, has not read for ``Limits/stallTime``, or the server
        ///   stops; the task is cancelled then, too.
        public func write(_ bytes: [UInt8]) async throws(BodyError) { try await exchange.write(bytes) }
    }
}

extension HTTPServer {
    /// What a handler does with a request.
    public enum Reply: Sendable {
        /// Answers at once, on the server's thread.
        case now(Response)
        /// Answers at once with what others are answered as well.
        case shared(SharedResponse)
        /// Answers when this has run, in a task of its own. An error that it throws is answered with 500, and
        /// ``BodyError/tooLarge(limit:)`` with 413.
        case later(@Sendable () async throws -> Response)
    }
}

extension HTTPServer {
    /// A response to many requests: its headers are looked at once, and it is brought once into the form in which it is sent.
    ///
    /// `@unchecked Sendable`: libmicrohttpd counts those who have its response under a lock of its own, and nobody changes it once it is made.
    public final class SharedResponse: @unchecked Sendable {
        /// Bytes of its body at most.
        public static let mostBytes = Download.wholeLimit
        /// What it was made of.
        let response: Response
        private let handle: OpaquePointer

        /// What it answers with.
        public var status: Int { response.status }

        /// Nil for what is made for one request alone: a stream, or a body that is longer than what is handed over as a whole. And for what
        /// cannot be sent.
        public init?(_ response: Response) {
            guard !response.isUnsendable, !response.closesConnection else { return nil }
            let body: [UInt8]
            switch response.body {
            case .none: body = []
            case .bytes(let bytes): body = bytes
            case .stream: return nil
            }
            guard body.count <= Self.mostBytes, let handle = Answer.whole(body) else { return nil }
            Answer.add(response.headers, to: handle)
            (self.response, self.handle) = (response, handle)
        }

        deinit { MHD_destroy_response(handle) }

        /// Has it sent. `MHD_NO`, which closes the connection, where that cannot be.
        func queue(on connection: OpaquePointer) -> MHD_Result {
            MHD_queue_response(connection, UInt32(clamping: response.status), handle)
        }
    }
}
