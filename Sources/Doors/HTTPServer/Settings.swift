import Glibc

extension HTTPServer {
    /// How much a client may take.
    public struct Limits: Sendable {
        /// Connections at once, from all addresses. One more is closed as it comes.
        public var connections = 10_000
        /// Connections at once from one address.
        public var connectionsPerAddress = 1_000
        /// Bytes of the memory that a connection has for the head of its request, and for that of the answer, at least 4096. A
        /// longer target is answered with 414, longer headers with 431.
        public var headBytes = 16 << 10
        /// Bytes of a request's body. A longer one is answered with 413, before it is read where its length is told.
        public var bodyBytes = 16 << 20
        /// Bytes of a body that are read and thrown away when the handler has answered without reading them, so that the
        /// connection can be kept. Where more are to come it is closed.
        public var unreadBytes = 256 << 10
        /// Bytes of a stream that wait for the client before the writer has to.
        public var queuedBytes = 64 << 10
        /// How long a head may take, from the first connection or the request line on; 408 then.
        public var headTime: Duration = .seconds(10)
        /// How long a connection is kept without a request.
        public var idleTime: Duration = .seconds(60)
        /// How long a request may take, from its head to the handler's answer, its body included: 408 when the client is late,
        /// and 503 when the handler is. What the answer's body takes does not count.
        public var requestTime: Duration = .seconds(60)
        /// How long the client may take nothing of an answer that is there; it is dropped then.
        public var stallTime: Duration = .seconds(30)

        /// The defaults.
        public init() {}
    }

    /// How a server runs.
    public struct Settings: Sendable {
        /// How much a client may take.
        public var limits = Limits()
        /// The methods that a handler is asked for. Others are answered with 501.
        public var methods: Set = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
        /// Threads that read and write, and run handlers up to where they first wait.
        public var threads = max(1, Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))))
        /// Makes the answer to what the door refuses; a stream is left out of it. What libmicrohttpd refuses by itself has a short page of its own.
        public var refusal: @Sendable (Refusal) -> Response = { Response(status: $0.status, text: $0.reason + "\n") }
        /// Told what no answer tells. On the server's threads: keep it short.
        public var note: @Sendable (Note) -> Void = { _ in }

        /// The defaults.
        public init() {}
    }

    /// What a server notes, for a log.
    public enum Note: Sendable {
        /// A handler, or the writer of a stream, threw this.
        case handlerFailed(any Error)
        /// A handler's answer could not be sent, since its status or its headers are none.
        case unsendable(status: Int)
        /// A request was refused by the door.
        case refused(Refusal, remoteAddress: String)
        /// A client was dropped since it did not read or write for so long, or its connection was one too many.
        case dropped(reason: String, remoteAddress: String)
        /// No connection can be taken for now, since the process lacks descriptors or memory. It tries again twice a second.
        case takesNone(reason: String)
        /// libmicrohttpd's words.
        case library(String)
    }
}
