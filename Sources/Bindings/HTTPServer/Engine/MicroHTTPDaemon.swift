import CMicroHTTP
import Concurrency
import Glibc

/// libmicrohttpd's daemon and the context of its callbacks.
///
/// `@unchecked Sendable`: the pointers are constant. libmicrohttpd accepts connections from any thread, and may be
/// stopped once from any thread. ``HTTPServer`` makes sure that it is stopped only once.
final class MicroHTTPDaemon: @unchecked Sendable {
    private let daemon: OpaquePointer
    private let callbacks: UnsafeMutablePointer<cmicrohttp_callbacks>
    private let context: Unmanaged<ServerContext>

    /// Starts the daemon, which serves the connections that it is given.
    /// - Throws: ``HTTPServerError`` if memory or threads are not available.
    init(_ context: ServerContext) throws(HTTPServerError) {
        let settings = context.settings
        // The server counts connections itself. libmicrohttpd divides its limit among the threads, and one thread may
        // need the whole.
        let connections = UInt32(clamping: (settings.limits.connections + 64) * settings.threads)
        let kept = Unmanaged.passRetained(context)
        callbacks = .allocate(capacity: 1)
        callbacks.initialize(
            to: cmicrohttp_callbacks(
                context: kept.toOpaque(), on_connection: onConnection, on_target: onTarget, on_request: onRequest,
                on_end: onEnd, on_log: onLog))
        // libmicrohttpd reserves half of the memory for the request.
        let memory = max(4096, settings.limits.headBytes) + 2 * max(0, settings.limits.responseHeadBytes)
        let daemon = cmicrohttp_start(callbacks, UInt32(settings.threads), connections, memory)
        guard let daemon else {
            callbacks.deallocate()
            kept.release()
            throw HTTPServerError("cannot start libmicrohttpd")
        }
        self.daemon = daemon
        self.context = kept
    }

    /// Serves a connection and takes ownership of its socket.
    func serve(_ socket: Int32, from address: inout sockaddr_storage, _ size: socklen_t) {
        _ = withUnsafePointer(to: &address) {
            // On failure it logs the reason and closes the socket.
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { MHD_add_connection(daemon, socket, $0, size) }
        }
    }

    /// Closes all connections, stops the threads and frees everything. Blocks. No connection may be suspended at this
    /// point.
    func stop() {
        MHD_stop_daemon(daemon)
        callbacks.deallocate()
        context.release()
    }
}

// libmicrohttpd calls these functions on its threads. They are plain functions because a closure made in isolated code
// would trap.

private func context(_ pointer: UnsafeMutableRawPointer?) -> ServerContext {
    Unmanaged<ServerContext>.fromOpaque(pointer!).takeUnretainedValue()
}

func onConnection(
    _ server: UnsafeMutableRawPointer?, _ connection: OpaquePointer?,
    _ own: UnsafeMutablePointer<UnsafeMutableRawPointer?>?, _ what: MHD_ConnectionNotificationCode
) {
    guard let own else { return }
    if what == .CONNECTION_NOTIFY_STARTED {
        let made = Connection(socket: cmicrohttp_connection_socket(connection), context(server))
        own.pointee = Unmanaged.passRetained(made).toOpaque()
        made.opened()
    } else if let pointer = own.pointee {
        own.pointee = nil
        Unmanaged<Connection>.fromOpaque(pointer).takeRetainedValue().closed()
    }
}

/// Returns the request's context pointer: the connection, which outlives the request.
func onTarget(
    _: UnsafeMutableRawPointer?, _ target: UnsafePointer<CChar>?, _ connection: OpaquePointer?
) -> UnsafeMutableRawPointer? {
    guard let pointer = cmicrohttp_connection_context(connection) else { return nil }
    Unmanaged<Connection>.fromOpaque(pointer).takeUnretainedValue().began(
        target: target.map { String(cString: $0) } ?? "")
    return pointer
}

func onRequest(
    _: UnsafeMutableRawPointer?, _ connection: OpaquePointer?, _: UnsafePointer<CChar>?,
    _ method: UnsafePointer<CChar>?, _ version: UnsafePointer<CChar>?, _ part: UnsafePointer<CChar>?,
    _ size: UnsafeMutablePointer<Int>?, _ own: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
) -> MHD_Result {
    guard let connection, let method, let version, let size, let pointer = own?.pointee else { return .NO }
    return Unmanaged<Connection>.fromOpaque(pointer).takeUnretainedValue().handle(
        connection, method: method, version: version, part, size)
}

func onEnd(
    _: UnsafeMutableRawPointer?, _: OpaquePointer?, _ own: UnsafeMutablePointer<UnsafeMutableRawPointer?>?,
    _ how: MHD_RequestTerminationCode
) {
    guard let pointer = own?.pointee else { return }
    own?.pointee = nil
    Unmanaged<Connection>.fromOpaque(pointer).takeUnretainedValue().ended(
        complete: how == .REQUEST_TERMINATED_COMPLETED_OK)
}

func onLog(_ server: UnsafeMutableRawPointer?, _ message: UnsafePointer<CChar>?) {
    guard let message else { return }
    let text = String(cString: message)
    context(server).settings.note(.library(text.hasSuffix("\n") ? String(text.dropLast()) : text))
}

func onRead(
    _ exchange: UnsafeMutableRawPointer?, _: UInt64, _ buffer: UnsafeMutablePointer<CChar>?, _ count: Int
) -> Int {
    Unmanaged<HTTPTransaction>.fromOpaque(exchange!).takeUnretainedValue().read(
        into: UnsafeMutableRawBufferPointer(start: buffer, count: count))
}

func onReadEnd(_ exchange: UnsafeMutableRawPointer?) {
    Unmanaged<HTTPTransaction>.fromOpaque(exchange!).release()
}
