import CLinux
import Glibc
import Threads

// What the sweep does, on a thread of its own.

extension Exchange {
    /// Ends the request if something has taken too long; else says whether its socket is to be looked at.
    func check(_ now: ContinuousClock.Instant, _ context: ServerContext) -> Watch? {
        let (verdict, leftovers) = state.withLock { state in
            let verdict = state.check(now, limits)
            switch verdict {
            case .fine, .watch: return (verdict, ExchangeState.Leftovers())
            case .cut(_, let status):
                if let status { state.tell(status) }
                return (verdict, state.cut())
            // The answer comes below, made by a closure that must not run under the lock.
            case .refuse: return (verdict, ExchangeState.Leftovers())
            }
        }
        leftovers.end(cancel: true)
        switch verdict {
        case .fine: return nil
        case .watch(let socket, let mark): return Watch(exchange: self, socket: socket, mark: mark)
        case .cut(let reason, _):
            context.settings.note(.dropped(reason: reason, remoteAddress: remoteAddress))
            return nil
        case .refuse(let refusal):
            let response = refuse(refusal, context)
            state.withLock { state in
                state.mustClose = true
                if state.give(response) { return state.task } else { return nil }
            }?.cancel()
            return nil
        }
    }

    /// The client has closed its side, as was seen on a look with this mark: what happened since then makes that void.
    func clientLeft(_ mark: Int) {
        state.withLock { $0.clientLeft(mark) ? $0.cut() : ExchangeState.Leftovers() }.end(cancel: true)
    }

    /// Ends the request wherever it is.
    func cut() {
        state.withLock { $0.cut() }.end(cancel: true)
    }

    /// The connection is to be closed behind the answer, if that has not begun.
    func closeAfterwards() {
        state.withLock { $0.mustClose = true }
    }

    /// A socket to look at.
    struct Watch {
        let exchange: Exchange
        let socket: Int32
        let mark: Int
    }
}

extension ExchangeState {
    enum Verdict {
        /// Nothing to do.
        case fine
        /// Nobody else would notice that the client leaves.
        case watch(socket: Int32, mark: Int)
        /// The handler is late.
        case refuse(HTTPServer.Refusal)
        /// The client is late, or so is the handler before the request is complete; it is told the status, if there is one.
        case cut(reason: String, status: Int?)
    }

    func check(_ now: ContinuousClock.Instant, _ limits: HTTPServer.Limits) -> Verdict {
        if isGone || connection == nil { return .fine }
        let watch = Verdict.watch(socket: socket, mark: mark)
        if stage == .answering {
            // A stream that has nothing to send waits for its writer, for as long as that likes.
            if isSuspended { return watch }
            return now < deadline + limits.stallTime
                ? .fine : .cut(reason: "it takes nothing of its answer", status: nil)
        }
        guard now >= deadline else { return isSuspended || stage == .body || stage == .discarding ? watch : .fine }
        switch stage {
        case .body, .discarding:
            if let answer { return .cut(reason: "its request does not end", status: answer.status) }
            if upload.waiter != nil { return .cut(reason: "its request does not end", status: 408) }
            return .cut(reason: "the handler does not read its request", status: 503)
        case .arriving, .head, .complete, .answering:
            return answer == nil ? .refuse(HTTPServer.Refusal(503, "The answer takes too long.")) : .fine
        }
    }

    /// Whether the client is to be taken for gone, having closed its side.
    mutating func clientLeft(_ mark: Int) -> Bool {
        guard connection != nil, !isGone, mark == self.mark else { return false }
        // Suspended, nothing will come of what it may have sent before. Else libmicrohttpd may be about to read that.
        if isSuspended || leftMark == mark { return true }
        leftMark = mark
        return false
    }
}

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
