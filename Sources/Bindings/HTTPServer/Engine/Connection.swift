import CMicroHTTP
import Concurrency
import Glibc

/// A client's connection, from libmicrohttpd's first callback for it to the last.
final class Connection: Sendable {
    private enum Phase {
        /// Waiting for a request since the given time. The first request has less time to arrive.
        case idle(since: ContinuousClock.Instant, isFirst: Bool)
        /// The request line arrived at the given time.
        case head(since: ContinuousClock.Instant)
        /// A request is in flight.
        case busy
    }

    private struct State {
        var phase: Phase
        /// Nil once the connection is closed.
        var socket: Int32?
        var target = ""
        var exchange: HTTPTransaction?
        /// True if the connection is closed after the request in flight.
        var isClosing = false
        /// True if no more data is accepted from the connection.
        var isCut = false

        /// Shuts the socket down. libmicrohttpd notices that and closes it.
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

    /// Registers the new connection, and closes it if there are too many.
    func opened() {
        guard let event = context.connections.add(self) else { return }
        cut()
        context.settings.note(event)
    }

    /// Records that a request line has arrived.
    func began(target: String) {
        state.withLock { state in
            state.target = target
            state.phase = .head(since: .now)
        }
    }

    /// Implements libmicrohttpd's request handler. It is called at the end of the head, for each part of the body, at
    /// the end of the request, and each time the connection is resumed at one of those points.
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
        let head: RequestHead
        do throws(HTTPServer.HTTPRequestError) {
            head = try receivedHead(connection, method, version, target, context.settings)
        } catch {
            context.settings.note(.refused(error, remoteAddress: address))
            return NativeResponse(context.answer(to: error), closing: true).queue(on: connection)
        }
        let exchange = HTTPTransaction(
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
        // A response at the end of the head costs the connection. Without a body the whole request arrives in a moment.
        return head.framing == .none ? .YES : follow(exchange.proceed(context), exchange, connection)
    }

    private func follow(_ step: HTTPTransaction.Step, _ exchange: HTTPTransaction, _ connection: OpaquePointer)
        -> MHD_Result
    {
        switch step {
        case .goOn: .YES
        case .end: .NO
        case .answer(_, let shared?, closing: false): shared.queue(on: connection)
        case .answer(let response, _, let closing):
            NativeResponse(response, closing: closing, exchange).queue(on: connection)
        }
    }

    /// Handles the end of a request, or the close of the connection in the middle of one.
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

    /// Removes the connection. Its descriptor is closed next.
    func closed() {
        state.withLock { $0.socket = nil }
        context.connections.remove(self)
    }

    // MARK: On other threads

    /// True if a request is in flight.
    var isBusy: Bool { state.withLock { $0.exchange != nil } }

    /// The socket; nil if the connection is closed or cut.
    var openSocket: Int32? { state.withLock { $0.isCut ? nil : $0.socket } }

    /// Ends whatever exceeds its time limit. Otherwise returns a probe if the socket is to be polled.
    func check(_ now: ContinuousClock.Instant) -> HTTPTransaction.DisconnectProbe? {
        let limits = context.settings.limits
        let (exchange, reason) = state.withLock { state -> (HTTPTransaction?, String?) in
            guard let socket = state.socket, !state.isCut else { return (nil, nil) }
            switch state.phase {
            case .busy: return (state.exchange, nil)
            case .idle(let since, isFirst: false):
                guard now >= since + limits.idleTime else { return (nil, nil) }
            case .idle(let since, isFirst: true), .head(let since):
                guard now >= since + limits.headTime else { return (nil, nil) }
                StatusLine.send(408, to: socket)
                state.cut()
                return (nil, "its request head is incomplete")
            }
            state.cut()
            return (nil, nil)
        }
        if let reason { context.settings.note(.dropped(reason: reason, remoteAddress: address)) }
        return exchange?.check(now, context)
    }

    /// Closes the connection, after the request in flight if there is one.
    func closeAfterwards() {
        let exchange = state.withLock { state in
            state.isClosing = true
            if case .idle = state.phase { state.cut() }
            return state.exchange
        }
        exchange?.closeAfterwards()
    }

    /// Cuts the connection and cancels the request in flight.
    func cut() {
        let exchange = state.withLock { state in
            state.cut()
            return state.exchange
        }
        exchange?.cut()
    }
}
