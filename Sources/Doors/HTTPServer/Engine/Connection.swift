import CMicroHTTP
import Glibc
import Threads

/// A client's connection, from libmicrohttpd's first word of it to its last.
final class Connection: Sendable {
    private enum Phase {
        /// Waiting for a request, since then; the first one has less time to come.
        case idle(since: ContinuousClock.Instant, isFirst: Bool)
        /// The request line is there, since then.
        case head(since: ContinuousClock.Instant)
        /// A request is under way.
        case busy
    }

    private struct State {
        var phase: Phase
        /// Nil once it is closed.
        var socket: Int32?
        var target = ""
        var exchange: Exchange?
        /// It is to be closed behind the request that is under way.
        var isClosing = false
        /// Nothing more is taken from it.
        var isCut = false

        /// libmicrohttpd finds the socket shut down, and closes it.
        mutating func cut() {
            isCut = true
            if let socket { shutdown(socket, Int32(SHUT_RDWR)) }
        }
    }

    let address: String
    private let context: ServerContext
    private let state: Lock<State>

    init(socket: Int32, _ context: ServerContext) {
        self.context = context
        address = PeerAddress.text(of: socket)
        state = Lock(State(phase: .idle(since: .now, isFirst: true), socket: socket))
    }

    // MARK: On libmicrohttpd's thread

    /// The connection is there.
    func opened() {
        guard let reason = context.connections.add(self) else { return }
        cut()
        context.settings.note(.dropped(reason: reason, remoteAddress: address))
    }

    /// A request line has come.
    func began(target: String) {
        state.withLock { state in
            state.target = target
            state.phase = .head(since: .now)
        }
    }

    /// libmicrohttpd's handler: called at the end of the head, for each part of the body, at the end of the request, and each
    /// time that the connection was resumed at one of those places.
    func handle(
        _ connection: OpaquePointer, method: UnsafePointer<CChar>, version: UnsafePointer<CChar>,
        _ part: UnsafePointer<CChar>?, _ size: UnsafeMutablePointer<Int>
    ) -> MHD_Result {
        guard let exchange = state.withLock({ $0.exchange }) else { return begin(connection, method, version) }
        guard size.pointee > 0 else { return follow(exchange.proceed(context), exchange, connection) }
        guard let taken = exchange.received(UnsafeRawBufferPointer(start: part, count: size.pointee)) else {
            return .NO
        }
        size.pointee -= taken
        return .YES
    }

    private func begin(
        _ connection: OpaquePointer, _ method: UnsafePointer<CChar>, _ version: UnsafePointer<CChar>
    ) -> MHD_Result {
        let (target, socket) = state.withLock { ($0.target, $0.isCut ? nil : $0.socket) }
        guard let socket else { return .NO }
        let head: Head
        do throws(HTTPServer.Refusal) {
            head = try receivedHead(connection, method, version, target, context.settings)
        } catch {
            context.settings.note(.refused(error, remoteAddress: address))
            return Answer(context.answer(to: error), closing: true).queue(on: connection)
        }
        let exchange = Exchange(
            head, ConnectionHandle(pointer: connection), socket: socket, remoteAddress: address,
            context.settings.limits)
        let isCut = state.withLock { state in
            state.phase = .busy
            state.exchange = exchange
            if state.isClosing { exchange.closeAfterwards() }
            return state.isCut
        }
        if isCut {
            exchange.cut()
            return .NO
        }
        // An answer at the end of the head costs the connection: without a body the whole request is there in a moment.
        return head.framing == .none ? .YES : follow(exchange.proceed(context), exchange, connection)
    }

    private func follow(_ step: Exchange.Step, _ exchange: Exchange, _ connection: OpaquePointer) -> MHD_Result {
        switch step {
        case .goOn: .YES
        case .end: .NO
        case .answer(_, let shared?, closing: false): shared.queue(on: connection)
        case .answer(let response, _, let closing): Answer(response, closing: closing, exchange).queue(on: connection)
        }
    }

    /// A request is over, or the connection was closed in the middle of it.
    func ended(complete: Bool) {
        let (exchange, isClosing) = state.withLock { state in
            state.phase = .idle(since: .now, isFirst: false)
            if state.isClosing, let socket = state.socket { shutdown(socket, Int32(SHUT_RDWR)) }
            defer { state.exchange = nil }
            return (state.exchange, state.isClosing)
        }
        exchange?.ended(complete: complete)
        if isClosing { context.connections.requestEnded() }
    }

    /// The connection is gone; its descriptor is closed next.
    func closed() {
        state.withLock { $0.socket = nil }
        context.connections.remove(self)
    }

    // MARK: On other threads

    /// Whether a request is under way.
    var isBusy: Bool { state.withLock { $0.exchange != nil } }

    /// Ends what takes too long; else says whether the socket is to be looked at.
    func check(_ now: ContinuousClock.Instant) -> Exchange.Watch? {
        let limits = context.settings.limits
        let (exchange, reason) = state.withLock { state -> (Exchange?, String?) in
            guard let socket = state.socket, !state.isCut else { return (nil, nil) }
            switch state.phase {
            case .busy: return (state.exchange, nil)
            case .idle(let since, isFirst: false):
                guard now >= since + limits.idleTime else { return (nil, nil) }
            case .idle(let since, isFirst: true), .head(let since):
                guard now >= since + limits.headTime else { return (nil, nil) }
                StatusLine.send(408, to: socket)
                state.cut()
                return (nil, "its request has no end of its head")
            }
            state.cut()
            return (nil, nil)
        }
        if let reason { context.settings.note(.dropped(reason: reason, remoteAddress: address)) }
        return exchange?.check(now, context)
    }

    /// Closes the connection, behind the request that is under way if there is one.
    func closeAfterwards() {
        let exchange = state.withLock { state in
            state.isClosing = true
            if case .idle = state.phase { state.cut() }
            return state.exchange
        }
        exchange?.closeAfterwards()
    }

    /// Ends the connection and the request that is under way.
    func cut() {
        let exchange = state.withLock { state in
            state.cut()
            return state.exchange
        }
        exchange?.cut()
    }
}
