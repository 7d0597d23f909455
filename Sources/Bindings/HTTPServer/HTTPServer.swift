import CMicroHTTP
import Concurrency
import Glibc

/// An HTTP/1.1 server. A request that is not answered immediately is answered by a task, which may suspend without
/// holding a thread.
///
/// Handlers and their tasks start on the server's threads and run there up to their first suspension point. Run long
/// computations elsewhere. A handler's task is cancelled when its client no longer waits for the response. Call
/// ``shutdown(gracePeriod:)`` at the end.
public final class HTTPServer: Sendable {
    /// Handles a request immediately, or returns the work that does.
    public typealias RequestHandler = @Sendable (Request) -> HandlerResult
    /// Handles a request in a task, as in ``HandlerResult/later(_:)``.
    public typealias Handler = @Sendable (Request) async throws -> Response

    /// The port that the server listens on.
    public let port: UInt16
    private let context: ServerContext
    private let daemon: MicroHTTPDaemon
    private let acceptor: Acceptor
    private let sweep: TimeoutMonitor
    private let stopping = Lock<Task<Void, Never>?>(nil)

    private init(_ listener: consuming Listener, _ context: ServerContext, _ daemon: MicroHTTPDaemon) {
        port = listener.port
        self.context = context
        self.daemon = daemon
        acceptor = Acceptor(listener, daemon, context.settings.note)
        sweep = TimeoutMonitor(context.connections)
    }

    /// Starts a server.
    /// - Parameters:
    ///   - address: An IP address of this machine. `0.0.0.0` and `::` stand for all of them.
    ///   - port: The port to listen on; 0 for a free one.
    /// - Throws: ``HTTPServerError`` if the server cannot listen there.
    public static func start(
        on address: String, port: UInt16 = 0, _ settings: Settings = Settings(), syncHandler: @escaping RequestHandler
    ) throws(HTTPServerError) -> HTTPServer {
        let listener = try Listener(on: address, port: port)
        let context = ServerContext(settings, syncHandler)
        return HTTPServer(listener, context, try MicroHTTPDaemon(context))
    }

    /// Starts a server that handles each request in a task.
    public static func start(
        on address: String, port: UInt16 = 0, _ settings: Settings = Settings(), handler: @escaping Handler
    ) throws(HTTPServerError) -> HTTPServer {
        try start(
            on: address, port: port, settings, syncHandler: { request in .deferred { try await handler(request) } })
    }

    /// The number of open connections.
    public var connections: Int { context.connections.count }

    /// The version of libmicrohttpd, such as `0.9.75`.
    public static var libraryVersion: String { String(cString: MHD_get_version()) }

    /// Stops accepting connections, lets requests in flight finish within `grace`, drops the rest, and frees
    /// everything.
    ///
    /// The tasks of dropped requests are cancelled but not awaited. Further calls wait for the same stop.
    public func shutdown(gracePeriod grace: Duration) async {
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
        await withTimeout(grace) { await idle.wait() }
        idle.signal()
        // A connection that was cut is never suspended again, as libmicrohttpd requires before it stops.
        for connection in context.connections.all { connection.cut() }
        await blocking {
            self.sweep.stop()
            self.daemon.stop()
        }
    }
}

/// An error that prevents a server from starting.
public struct HTTPServerError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The reason.
    public let description: String
    /// True if another socket listens on the address and port.
    public let isAddressInUse: Bool

    init(_ description: String, isAddressInUse: Bool = false) {
        (self.description, self.isAddressInUse) = (description, isAddressInUse)
    }
}

extension HTTPServer {
    /// Limits on what a client may use.
    public struct Limits: Sendable {
        /// Maximum number of connections. Further ones are closed immediately.
        public var connections = 10_000
        /// Maximum number of connections from one address; 0 for no limit besides ``connections``. Behind a proxy, all
        /// connections come from its address.
        public var connectionsPerAddress = 0
        /// Memory of a connection for its request head and its response head, in bytes; at least 4096. A longer target
        /// is answered with 414, longer headers with 431.
        public var headBytes = 16 << 10
        /// Additional memory of a connection for long headers of responses, in bytes.
        public var responseHeadBytes = 0
        /// Maximum size of a request body in bytes. A longer one is answered with 413, before it is read if the request
        /// declares its length.
        public var bodyBytes = 16 << 20
        /// Maximum number of body bytes that are read and discarded to reuse the connection when the handler has
        /// responded without reading them. If more are to come, the connection is closed.
        public var unreadBytes = 256 << 10
        /// Number of stream bytes queued for the client before the writer has to wait.
        public var queuedBytes = 64 << 10
        /// Timeout for a request head, from the start of the connection or the request line. It is answered with 408.
        public var headTime: Duration = .seconds(10)
        /// Timeout of an idle connection.
        public var idleTime: Duration = .seconds(60)
        /// Timeout of a request, from its head to the handler's response, including the request body. The status is 408
        /// if the client is late and 503 if the handler is. The time to send the response does not count.
        public var requestTime: Duration = .seconds(60)
        /// Timeout for a client that reads nothing of an available response. The client is dropped.
        public var stallTime: Duration = .seconds(30)

        /// Creates the default limits.
        public init() {}
    }

    /// Settings of a server.
    public struct Settings: Sendable {
        /// Limits on what a client may use.
        public var limits = Limits()
        /// The methods that are passed to the handler. Others are answered with 501.
        public var methods: Set = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
        /// Number of threads that do I/O and run handlers up to their first suspension point.
        public var threads = max(1, Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))))
        /// Builds the response to a request that the server rejects. A stream in it is left out. Requests that
        /// libmicrohttpd itself rejects get a short page from libmicrohttpd.
        public var refusal: @Sendable (HTTPRequestError) -> Response = {
            Response(status: $0.status, text: $0.reason + "\n")
        }
        /// Called for events that no response reports. It runs on the server's threads and must be short.
        public var note: @Sendable (ServerEvent) -> Void = { _ in }

        /// Creates the default settings.
        public init() {}
    }

    /// An event of the server, for a log.
    public enum ServerEvent: Sendable {
        /// A handler, or the writer of a stream, threw this error.
        case handlerFailed(any Error)
        /// A handler's response could not be sent because its status or headers are invalid.
        case unsendable(status: Int)
        /// The server rejected a request.
        case refused(HTTPRequestError, remoteAddress: String)
        /// A client was dropped because it did not read or write in time, or because the server is stopping.
        case dropped(reason: String, remoteAddress: String)
        /// A new connection was closed because it exceeds a limit on connections.
        case connectionLimit(reason: String, remoteAddress: String)
        /// No connection can be accepted because the process lacks descriptors or memory. The server retries twice a
        /// second.
        case takesNone(reason: String)
        /// A message from libmicrohttpd.
        case library(String)
    }
}

extension HTTPServer {
    /// A request that the server rejects before the handler sees it, or an error response that it sends in place of the
    /// handler's.
    public struct HTTPRequestError: Error, Hashable, Sendable {
        /// The status of the response, 400 or above.
        public let status: Int
        /// The problem with the request, for the client. It reveals nothing about the server's internals.
        public let reason: String

        /// Creates an error with this status and reason.
        public init(_ status: Int, _ reason: String) {
            self.status = status
            self.reason = reason
        }
    }

    /// An error while reading a request body or writing a response body.
    public enum BodyError: Error, Hashable, Sendable {
        /// The request body is larger than this number of bytes. If a handler rethrows this, the response is 413.
        case tooLarge(limit: Int)
        /// The connection is closed, or the server has ended the request. The handler's response is ignored.
        case connectionLost
    }
}
