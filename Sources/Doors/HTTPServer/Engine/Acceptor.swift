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
