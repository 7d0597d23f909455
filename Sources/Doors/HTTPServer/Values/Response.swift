import HTTPFields

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
        public var headers: Headers
        /// Its body.
        public var body: Body
        /// Whether the connection is closed behind it.
        public var closesConnection = false

        /// A response of these parts.
        public init(status: Int, headers: Headers = Headers(), body: Body = .none) {
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
