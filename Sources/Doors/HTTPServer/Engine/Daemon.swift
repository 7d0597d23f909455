import CMicroHTTP
import Glibc
import Threads

/// libmicrohttpd's daemon, and the context that its callbacks are given.
///
/// `@unchecked Sendable`: the pointers are constant, and libmicrohttpd may be given connections from any thread, and be asked
/// from any to stop, once: ``HTTPServer`` sees to that.
final class Daemon: @unchecked Sendable {
    private let daemon: OpaquePointer
    private let callbacks: UnsafeMutablePointer<cmicrohttp_callbacks>
    private let context: Unmanaged<ServerContext>

    /// Serves what it is given from now on.
    /// - Throws: ``HTTPServerError`` when there is no memory, or no thread.
    init(_ context: ServerContext) throws(HTTPServerError) {
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
            callbacks, UInt32(settings.threads), connections, max(4096, settings.limits.headBytes))
        guard let daemon else {
            callbacks.deallocate()
            kept.release()
            throw HTTPServerError("libmicrohttpd does not start")
        }
        self.daemon = daemon
        self.context = kept
    }

    /// Serves one more connection, whose socket it takes over.
    func serve(_ socket: Int32, from address: inout sockaddr_storage, _ size: socklen_t) {
        _ = withUnsafePointer(to: &address) {
            // Where it cannot, it says so in its log and closes the socket.
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { MHD_add_connection(daemon, socket, $0, size) }
        }
    }

    /// Ends all connections and the threads, and frees everything. It blocks. No connection may be suspended any more.
    func stop() {
        MHD_stop_daemon(daemon)
        callbacks.deallocate()
        context.release()
    }
}
