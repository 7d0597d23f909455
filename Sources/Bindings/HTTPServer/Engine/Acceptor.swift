import CLinux
import Concurrency
import Glibc

/// Accepts connections on the listening socket and passes them to libmicrohttpd until it is stopped.
///
/// libmicrohttpd could listen itself. But if it is asked to stop listening while it keeps serving, its thread pool
/// occasionally aborts the process: MHD_quiesce_daemon and a pool thread both remove the socket from that thread's
/// epoll set. The second one finds nothing there and aborts (0.9.75, daemon.c:5531; seen in 1 of 1,000 stops under
/// load).
final class Acceptor: Sendable {
    /// The pause before accepting again after the process ran out of descriptors or memory.
    private static let pause: Duration = .milliseconds(500)
    /// The number of connections accepted in a row before checking whether to stop.
    private static let batch = 64

    private let socket: Int32
    private let daemon: MicroHTTPDaemon
    private let note: @Sendable (HTTPServer.ServerEvent) -> Void
    private let loop = EventLoop(name: "http-accept")

    init(
        _ listener: consuming Listener, _ daemon: MicroHTTPDaemon,
        _ note: @escaping @Sendable (HTTPServer.ServerEvent) -> Void
    ) {
        socket = listener.release()
        self.daemon = daemon
        self.note = note
        loop.perform { self.watch() }
    }

    /// Stops listening. Blocks.
    func stop() {
        loop.stop()
        // A child that this process has just forked also has the socket until its exec. Closing it alone would leave it
        // listening.
        shutdown(socket, Int32(SHUT_RDWR))
        close(socket)
    }

    // MARK: On the loop

    private func watch() {
        loop.watch(socket, for: .readable) { _ in self.take() }
    }

    private func take() {
        for _ in 0..<Self.batch {
            var address = sockaddr_storage()
            var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
            let connection = clinux_accept(socket, &address, &size)
            if connection >= 0 {
                daemon.serve(connection, from: &address, size)
                continue
            }
            switch errno {
            case EMFILE, ENFILE, ENOBUFS, ENOMEM:
                note(.takesNone(reason: String(cString: strerror(errno))))
                loop.unwatch(socket)
                loop.schedule(after: Self.pause) { self.watch() }
            default:
                // No client is waiting, or the waiting client has gone (accept(2) has a dozen error codes for that).
                // The loop reports clients that wait.
                break
            }
            return
        }
    }
}

/// A listening socket, which this value owns.
struct Listener: ~Copyable {
    let socket: Int32
    let port: UInt16

    /// - Throws: ``HTTPServerError`` if the address does not belong to this machine or is in use.
    init(on address: String, port: UInt16) throws(HTTPServerError) {
        var hints = addrinfo()
        hints.ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var found: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(address, "\(port)", &hints, &found) == 0, let found else {
            throw HTTPServerError("\(address.debugDescription) is not an IP address to listen on")
        }
        defer { freeaddrinfo(found) }
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        let socket = Glibc.socket(found.pointee.ai_family, kind, 0)
        guard socket >= 0 else { throw HTTPServerError("cannot create a socket: \(String(cString: strerror(errno)))") }
        var yes: Int32 = 1
        setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
        guard bind(socket, found.pointee.ai_addr, found.pointee.ai_addrlen) == 0, listen(socket, SOMAXCONN) == 0,
            let bound = Self.port(of: socket)
        else {
            let number = errno
            close(socket)
            throw HTTPServerError(
                "cannot listen on \(address) port \(port): \(String(cString: strerror(number)))",
                isAddressInUse: number == EADDRINUSE)
        }
        self.socket = socket
        self.port = bound
    }

    deinit { close(socket) }

    /// Releases ownership of the socket to the caller.
    consuming func release() -> Int32 {
        let socket = socket
        discard self
        return socket
    }

    private static func port(of socket: Int32) -> UInt16? {
        var storage = sockaddr_storage()
        var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let code = withUnsafeMutablePointer(to: &storage) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(socket, $0, &size) }
        }
        guard code == 0 else { return nil }
        // The port is at the same offset for IPv4 and IPv6.
        return withUnsafeBytes(of: storage) { UInt16(bigEndian: $0.loadUnaligned(fromByteOffset: 2, as: UInt16.self)) }
    }
}
