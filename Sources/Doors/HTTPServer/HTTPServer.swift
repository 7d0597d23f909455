import CMicroHTTP
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
