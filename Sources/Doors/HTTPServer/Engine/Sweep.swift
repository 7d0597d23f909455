import CLinux
import Glibc
import Threads

/// Looks twice a second at all connections: at their time limits, and, for those that libmicrohttpd does not look at since
/// they are suspended, whether the client is still there.
///
/// libmicrohttpd's own time limit is for inactivity, so one byte a second would live for ever; and 0.9.75 loses the end of a
/// connection that comes along with the last bytes, so uploads that have not ended are looked at here too.
final class Sweep: Sendable {
    /// Milliseconds.
    private static let interval: Int32 = 500
    /// POLLRDHUP has the value of epoll's, and needs a macro to be seen.
    private static let closedByPeer = Int16(EPOLLRDHUP.rawValue)

    private let connections: Connections
    private let wakeup: Int32
    private let thread = Lock<WorkThread?>(nil)

    init(_ connections: Connections) {
        self.connections = connections
        wakeup = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
        precondition(wakeup >= 0, "no eventfd: errno \(errno)")
        let started = WorkThread(name: "http-sweep", stackSize: 1 << 18) { self.run() }
        thread.withLock { $0 = started }
    }

    deinit { close(wakeup) }

    /// Ends the thread and waits for it. It blocks.
    func stop() {
        var one: UInt64 = 1
        _ = write(wakeup, &one, 8)
        thread.withLock { $0 }?.join()
    }

    private func run() {
        var end = pollfd(fd: wakeup, events: Int16(POLLIN), revents: 0)
        while true {
            let count = poll(&end, 1, Self.interval)
            if count > 0 { return }
            look()
        }
    }

    private func look() {
        let now = ContinuousClock.now
        let watches = connections.all.compactMap { $0.check(now) }
        guard !watches.isEmpty else { return }
        var sockets = watches.map { pollfd(fd: $0.socket, events: Self.closedByPeer, revents: 0) }
        guard poll(&sockets, nfds_t(sockets.count), 0) > 0 else { return }
        // A socket may be another connection's by now: the mark tells.
        for (watch, socket) in zip(watches, sockets) where socket.revents != 0 {
            watch.exchange.clientLeft(watch.mark)
        }
    }
}
