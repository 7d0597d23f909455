import CLinux
import Concurrency
import Glibc

// Timeouts, checked by a dedicated thread.

extension HTTPTransaction {
    /// Ends the request if it has exceeded a time limit. Otherwise returns a probe if its socket is to be polled.
    func check(_ now: ContinuousClock.Instant, _ context: ServerContext) -> DisconnectProbe? {
        let (verdict, leftovers) = state.withLock { state in
            let verdict = state.check(now, limits)
            switch verdict {
            case .fine, .watch: return (verdict, HTTPTransactionState.CleanupActions())
            case .cut(_, let status):
                if let status { state.tell(status) }
                return (verdict, state.cut())
            // The response is built below by a closure that must not run under the lock.
            case .refuse: return (verdict, HTTPTransactionState.CleanupActions())
            }
        }
        leftovers.end(cancel: true)
        switch verdict {
        case .fine: return nil
        case .watch(let socket, let mark): return DisconnectProbe(exchange: self, socket: socket, mark: mark)
        case .cut(let reason, _):
            context.settings.note(.dropped(reason: reason, remoteAddress: remoteAddress))
            return nil
        case .refuse(let refusal):
            let response = refuse(refusal, context)
            state.withLock { $0.refuse(response) }?.cancel()
            return nil
        }
    }

    /// Handles a client that has closed its side. `mark` is the activity counter at the time of the probe; any activity
    /// since then invalidates the observation.
    func clientLeft(_ mark: Int) {
        state.withLock { $0.clientLeft(mark) ? $0.cut() : HTTPTransactionState.CleanupActions() }.end(cancel: true)
    }

    /// Ends the request in any stage.
    func cut() {
        state.withLock { $0.cut() }.end(cancel: true)
    }

    /// Closes the connection after the response, if the response has not begun.
    func closeAfterwards() {
        state.withLock { $0.mustClose = true }
    }

    /// A socket to poll.
    struct DisconnectProbe {
        let exchange: HTTPTransaction
        let socket: Int32
        let mark: Int
    }
}

extension HTTPTransactionState {
    enum TimeoutDecision {
        /// The request is within its limits.
        case fine
        /// The socket must be polled: nothing else would notice that the client disconnects.
        case watch(socket: Int32, mark: Int)
        /// The handler is late.
        case refuse(HTTPServer.HTTPRequestError)
        /// The client is late, or the handler is late before the request is complete. The status, if any, is sent to
        /// the client.
        case cut(reason: String, status: Int?)
    }

    func check(_ now: ContinuousClock.Instant, _ limits: HTTPServer.Limits) -> TimeoutDecision {
        if isGone || connection == nil { return .fine }
        let watch = TimeoutDecision.watch(socket: socket, mark: mark)
        if stage == .answering {
            // A stream without data waits for its writer without a limit.
            if isSuspended { return watch }
            return now < deadline + limits.stallTime
                ? .fine : .cut(reason: "it does not read the response", status: nil)
        }
        guard now >= deadline else { return isSuspended || stage == .body || stage == .discarding ? watch : .fine }
        switch stage {
        case .body, .discarding:
            if let answer { return .cut(reason: "its request body is incomplete", status: answer.status) }
            if upload.waiter != nil { return .cut(reason: "its request body is incomplete", status: 408) }
            return .cut(reason: "the handler does not read the request body", status: 503)
        case .arriving, .head, .complete, .answering:
            return answer == nil ? .refuse(HTTPServer.HTTPRequestError(503, "The request took too long.")) : .fine
        }
    }

    /// True if a client that has closed its side counts as disconnected.
    mutating func clientLeft(_ mark: Int) -> Bool {
        guard connection != nil, !isGone, mark == self.mark else { return false }
        // While suspended, nothing that the client may have sent before is read. Otherwise libmicrohttpd may be about
        // to read it.
        if isSuspended || leftMark == mark { return true }
        leftMark = mark
        return false
    }
}

/// Checks all connections twice a second: their time limits, and whether the clients of suspended connections, which
/// libmicrohttpd does not poll, are still connected.
///
/// libmicrohttpd's own timeout is for inactivity only, so a client that sends one byte a second would live forever.
/// 0.9.75 also misses the end of a connection that arrives together with the last bytes, so unfinished uploads are
/// probed here too. And if exactly 128 events wait for one of its threads, which is as many as it takes at once, it
/// waits for the next one before it serves them (MHD_epoll of 0.9.75 and later), so input that is still unread is
/// reported again.
final class TimeoutMonitor: Sendable {
    /// Interval between checks, in milliseconds.
    private static let interval: Int32 = 500
    /// POLLRDHUP equals epoll's constant but is hidden behind a feature macro.
    private static let closedByPeer = Int16(EPOLLRDHUP.rawValue)

    private let connections: Connections
    private let wakeup: Int32
    private let thread = Lock<NamedThread?>(nil)

    init(_ connections: Connections) {
        self.connections = connections
        wakeup = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
        precondition(wakeup >= 0, "cannot create an eventfd: errno \(errno)")
        let started = NamedThread(name: "http-sweep") { self.run() }
        thread.withLock { $0 = started }
    }

    deinit { close(wakeup) }

    /// Stops the thread and waits for it. Blocks.
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
        let open = connections.all
        reportUnreadInput(of: open.compactMap(\.openSocket))
        let watches = open.compactMap { $0.check(now) }
        guard !watches.isEmpty else { return }
        var sockets = watches.map { pollfd(fd: $0.socket, events: Self.closedByPeer, revents: 0) }
        guard poll(&sockets, nfds_t(sockets.count), 0) > 0 else { return }
        // The descriptor may belong to another connection by now. The mark reveals that.
        for (watch, socket) in zip(watches, sockets) where socket.revents != 0 {
            watch.exchange.clientLeft(watch.mark)
        }
    }

    /// Makes epoll report unread input again: Linux checks for it when this option is set, here to its default. If a
    /// descriptor belongs to another connection by now, this has no other effect.
    private func reportUnreadInput(of sockets: [Int32]) {
        var sockets = sockets.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        guard poll(&sockets, nfds_t(sockets.count), 0) > 0 else { return }
        var one: Int32 = 1
        for socket in sockets where socket.revents & Int16(POLLIN) != 0 {
            setsockopt(socket.fd, SOL_SOCKET, SO_RCVLOWAT, &one, socklen_t(MemoryLayout<Int32>.size))
        }
    }
}
