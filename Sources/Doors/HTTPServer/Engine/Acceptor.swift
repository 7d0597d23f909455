import CLinux
import Glibc
import Threads

/// Takes connections from the listening socket, and gives them to libmicrohttpd, until it is stopped.
///
/// libmicrohttpd could listen by itself. But asked to listen no longer while it serves on, its thread pool ends the process now
/// and then: MHD_quiesce_daemon and a thread of the pool both take the socket out of that thread's epoll set, and who comes
/// second finds nothing there and aborts (0.9.75, daemon.c:5531; seen in 1 of 1,000 stops under load).
final class Acceptor: Sendable {
    /// How long it waits for what the process lacks: descriptors, or memory.
    private static let pause: Duration = .milliseconds(500)
    /// How many connections it takes in a row, before it looks whether it is to stop.
    private static let batch = 64

    private let socket: Int32
    private let daemon: Daemon
    private let note: @Sendable (HTTPServer.Note) -> Void
    private let loop = EventLoop(name: "http-accept")

    init(_ listener: consuming Listener, _ daemon: Daemon, _ note: @escaping @Sendable (HTTPServer.Note) -> Void) {
        socket = listener.release()
        self.daemon = daemon
        self.note = note
        loop.perform { self.watch() }
    }

    /// Listens no longer. It blocks.
    func stop() {
        loop.stop()
        // A child that this process has just forked has the socket too, up to its exec: closing it alone would leave it listening.
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
                // Nobody else waits, or who waited has gone (accept(2) has a dozen names for that); the loop tells of those who do.
                break
            }
            return
        }
    }
}

/// A socket that listens, which it owns.
struct Listener: ~Copyable {
    let socket: Int32
    let port: UInt16

    /// - Throws: ``HTTPServerError`` when the address is none of this machine's, or is taken.
    init(on address: String, port: UInt16) throws(HTTPServerError) {
        var hints = addrinfo()
        hints.ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var found: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(address, "\(port)", &hints, &found) == 0, let found else {
            throw HTTPServerError("\(address.debugDescription) is no IP address to listen on")
        }
        defer { freeaddrinfo(found) }
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        let socket = Glibc.socket(found.pointee.ai_family, kind, 0)
        guard socket >= 0 else { throw HTTPServerError("no socket: \(String(cString: strerror(errno)))") }
        var yes: Int32 = 1
        setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
        guard bind(socket, found.pointee.ai_addr, found.pointee.ai_addrlen) == 0, listen(socket, SOMAXCONN) == 0,
            let bound = Self.port(of: socket)
        else {
            let reason = String(cString: strerror(errno))
            close(socket)
            throw HTTPServerError("cannot listen on \(address), port \(port): \(reason)")
        }
        self.socket = socket
        self.port = bound
    }

    deinit { close(socket) }

    /// Gives the socket away.
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
        // The port stands in the same place for IPv4 and IPv6.
        return withUnsafeBytes(of: storage) { UInt16(bigEndian: $0.loadUnaligned(fromByteOffset: 2, as: UInt16.self)) }
    }
}
