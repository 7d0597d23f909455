import CMicroHTTP
import Glibc
import Threads

/// An HTTP/1.1 server. What is not answered at once is answered by a task, which may wait for as long as it likes without holding a thread.
///
/// Handlers and their tasks begin on the server's own threads and are there up to where they first wait: what computes for long goes
/// elsewhere. A handler's task is cancelled when nobody waits for its answer any more. ``stop(within:)`` must be called in the end.
public final class HTTPServer: Sendable {
    /// Answers a request at once, or says how that is done.
    public typealias Replier = @Sendable (Request) -> Reply
    /// Answers a request in a task, as in ``Reply/later(_:)``.
    public typealias Handler = @Sendable (Request) async throws -> Response

    /// Where it listens.
    public let port: UInt16
    private let context: ServerContext
    private let daemon: Daemon
    private let acceptor: Acceptor
    private let sweep: Sweep
    private let stopping = Lock<Task<Void, Never>?>(nil)

    private init(_ listener: consuming Listener, _ context: ServerContext, _ daemon: Daemon) {
        port = listener.port
        self.context = context
        self.daemon = daemon
        acceptor = Acceptor(listener, daemon, context.settings.note)
        sweep = Sweep(context.connections)
    }

    /// Starts a server, which answers from now on.
    /// - Parameters:
    ///   - address: an IP address of this machine; `0.0.0.0` and `::` for all of them.
    ///   - port: 0 for a free one.
    /// - Throws: ``HTTPServerError`` when it cannot listen there.
    public static func start(
        on address: String, port: UInt16 = 0, _ settings: Settings = Settings(), replying: @escaping Replier
    ) throws(HTTPServerError) -> HTTPServer {
        let listener = try Listener(on: address, port: port)
        let context = ServerContext(settings, replying)
        return HTTPServer(listener, context, try Daemon(context))
    }

    /// Starts a server in which a task answers each request.
    public static func start(
        on address: String, port: UInt16 = 0, _ settings: Settings = Settings(), handler: @escaping Handler
    ) throws(HTTPServerError) -> HTTPServer {
        try start(on: address, port: port, settings, replying: { request in .later { try await handler(request) } })
    }

    /// How many connections are open.
    public var connections: Int { context.connections.count }

    /// libmicrohttpd's version, such as `0.9.75`.
    public static var libraryVersion: String { String(cString: MHD_get_version()) }

    /// Takes no more connections, lets requests that are under way end within `grace`, drops the rest, and frees everything.
    ///
    /// Tasks of handlers that are dropped are cancelled, and not waited for. Another call waits for the same end.
    public func stop(within grace: Duration) async {
        let end = stopping.withLock { stopping in
            if let stopping { return stopping }
            let started = Task.detached { await self.end(within: grace) }
            stopping = started
            return started
        }
        await end.value
    }

    private func end(within grace: Duration) async {
        await blocking { self.acceptor.stop() }
        let idle = context.connections.stopTaking()
        await atMost(grace) { await idle.wait() }
        idle.open()
        // A connection that was cut is never suspended again, as libmicrohttpd wants it before the end.
        for connection in context.connections.all { connection.cut() }
        await blocking {
            self.sweep.stop()
            self.daemon.stop()
        }
    }
}

/// Why a server could not be started.
public struct HTTPServerError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What happened.
    public let description: String

    init(_ description: String) { self.description = description }
}

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

extension HTTPServer {
    /// A request that the door does not hand to the handler, or an answer that it gives in the handler's place.
    public struct Refusal: Error, Hashable, Sendable {
        /// The status to answer with, 400 or above.
        public let status: Int
        /// What is wrong, for whoever sent the request. It tells nothing of the server's insides.
        public let reason: String

        /// A refusal with this status for this reason.
        public init(_ status: Int, _ reason: String) {
            self.status = status
            self.reason = reason
        }
    }

    /// Why a body could not be read, or written, to its end.
    public enum BodyError: Error, Hashable, Sendable {
        /// The request's body is larger than this many bytes. A handler that lets this pass answers 413.
        case tooLarge(limit: Int)
        /// The connection is gone, or the door has ended the request. Nobody sees what a handler answers now.
        case connectionLost
    }
}
