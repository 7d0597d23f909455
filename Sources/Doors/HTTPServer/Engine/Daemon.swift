import CMicroHTTP
import Glibc
import Threads

/// libmicrohttpd's daemon and all that belongs to it: the listening socket, and the context that its callbacks are given.
///
/// `@unchecked Sendable`: the pointers are constant, and libmicrohttpd may be asked from any thread to take no more connections
/// and to stop, each once: ``HTTPServer`` sees to that.
final class Daemon: @unchecked Sendable {
    private let daemon: OpaquePointer
    private let callbacks: UnsafeMutablePointer<cmicrohttp_callbacks>
    private let context: Unmanaged<ServerContext>

    /// Serves from now on. It takes the listening socket over.
    /// - Throws: ``HTTPServerError`` when there is no memory, or no thread.
    init(_ listener: consuming Listener, _ context: ServerContext) throws(HTTPServerError) {
        let settings = context.settings
        // The door counts connections itself. libmicrohttpd gives each thread its share of them, which one may need alone.
        let connections = UInt32(clamping: (settings.limits.connections + 64) * settings.threads)
        let kept = Unmanaged.passRetained(context)
        callbacks = .allocate(capacity: 1)
        callbacks.initialize(
            to: cmicrohttp_callbacks(
                context: kept.toOpaque(), on_connection: onConnection, on_target: onTarget, on_request: onRequest,
                on_end: onEnd, on_log: onLog))
        let daemon = cmicrohttp_start(
            listener.release(), callbacks, UInt32(settings.threads), connections, max(4096, settings.limits.headBytes))
        guard let daemon else {
            callbacks.deallocate()
            kept.release()
            throw HTTPServerError("libmicrohttpd does not start")
        }
        self.daemon = daemon
        self.context = kept
    }

    /// Takes no more connections.
    func quiesce() {
        let socket = MHD_quiesce_daemon(daemon)
        guard socket >= 0 else { return }
        // A child that this process has just forked has the socket too, up to its exec: closing it alone would leave it listening.
        shutdown(socket, Int32(SHUT_RDWR))
        close(socket)
    }

    /// Ends all connections and the threads, and frees everything. It blocks. No connection may be suspended any more.
    func stop() {
        MHD_stop_daemon(daemon)
        callbacks.deallocate()
        context.release()
    }
}
