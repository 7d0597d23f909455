import CMicroHTTP
import Concurrency
import Formats
import Glibc

/// A request and its response.
///
/// Three parties share this state under one lock: libmicrohttpd's thread for the connection, which calls in and may be
/// suspended; the handler's task, which reads, responds and writes; and the timeout monitor, which ends what takes too
/// long. A party that has something for a suspended connection resumes it, exactly once per suspension.
///
/// A handler may retain a request, and with it this object, without a limit. Therefore it holds no resources of the
/// server.
final class HTTPTransaction: Sendable {
    /// The next step of libmicrohttpd.
    enum Step {
        /// Continue: read the body, or wait to be resumed.
        case goOn
        /// Send this response, through its shared form if there is one.
        case answer(HTTPServer.Response, HTTPServer.SharedResponse?, closing: Bool)
        /// Close the connection.
        case end
    }

    let head: RequestHead
    let limits: HTTPServer.Limits
    let remoteAddress: String
    let state: Lock<HTTPTransactionState>

    init(
        _ head: RequestHead, _ connection: ConnectionHandle, socket: Int32, remoteAddress: String,
        _ limits: HTTPServer.Limits
    ) {
        self.head = head
        self.limits = limits
        self.remoteAddress = remoteAddress
        state = Lock(HTTPTransactionState(connection, socket: socket, framing: head.framing, limits: limits))
    }

    // MARK: On libmicrohttpd's thread

    /// Runs the handler, on this thread up to its first suspension point.
    private func start(_ context: ServerContext) {
        let body = HTTPServer.RequestBody(head.framing, self)
        switch context.replier(HTTPServer.Request(head, remoteAddress: remoteAddress, body: body)) {
        case .cached(let shared): _ = state.withLock { $0.give(shared.response, shared) }
        case .immediate(let response):
            if let produce = give(sendable(response, context)) { begin { await self.produce(produce, context) } }
        case .deferred(let work): begin { await self.run(work, context) }
        }
    }

    private func begin(_ work: @escaping @Sendable () async -> Void) {
        let task = Task.immediate { await work() }
        let isOver = state.withLock { state in
            state.task = task
            return state.isGone || state.isRefused
        }
        if isOver { task.cancel() }
    }

    /// Continues at the end of a head that announces a body, at the end of the whole request, or when resumed at
    /// either.
    func proceed(_ context: ServerContext) -> Step {
        if state.withLock({ $0.isFirstStep() }) { start(context) }
        let (step, waiter) = state.withLock { state in
            let waiter = state.requestCame()
            return (nextStep(&state), waiter)
        }
        waiter?.resume()
        return step
    }

    private func nextStep(_ state: inout HTTPTransactionState) -> Step {
        if state.isGone { return .end }
        if let answer = state.answer {
            // The rest of a short body is discarded and the connection is reused. A client that waits for 100 Continue
            // sends none.
            if state.stage == .head && isShort && !head.expectsContinue && !state.mustClose {
                state.stage = .discarding
                return .goOn
            }
            let closing = state.mustClose || state.stage == .head
            state.begin(answer, sendsBody: sendsBody(answer))
            return .answer(answer, state.shared, closing: closing)
        }
        if state.stage == .head && state.upload.isWanted {
            state.stage = .body
            return .goOn
        }
        state.suspend()
        return .goOn
    }

    private var isShort: Bool {
        if case .length(let length) = head.framing { length <= limits.unreadBytes } else { false }
    }

    /// Accepts a part of the body. Returns the number of bytes consumed, or nil if the connection is to be closed.
    func received(_ bytes: UnsafeRawBufferPointer) -> Int? {
        let (taken, waiter) = state.withLock { $0.received(bytes, limits) }
        waiter?.resume()
        return taken
    }

    /// Copies the next part of the response body into `buffer`. Returns the byte count, or one of libmicrohttpd's end
    /// codes.
    func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        let (count, waiter) = state.withLock { $0.read(into: buffer, queueLimit: limits.queuedBytes) }
        waiter?.resume()
        return count
    }

    /// Releases everything after libmicrohttpd has finished the request. The connection must not be used afterwards.
    func ended(complete: Bool) {
        let leftovers = state.withLock { state in
            let leftovers = state.giveUp()
            state.forget()
            return leftovers
        }
        leftovers.end(cancel: !complete)
    }

    // MARK: On the handler's task

    private func run(_ work: @Sendable () async throws -> HTTPServer.Response, _ context: ServerContext) async {
        let response = await response(work, context)
        if let produce = give(response) { await self.produce(produce, context) }
    }

    /// Sets the response, if the client is still connected. Returns the closure that produces the body, if there is one
    /// to run.
    private func give(_ response: HTTPServer.Response) -> Producing? {
        guard state.withLock({ $0.give(response) }) else { return nil }
        guard case .stream(_, let produce) = response.body, sendsBody(response) else { return nil }
        return produce
    }

    private typealias Producing = @Sendable (HTTPServer.BodyWriter) async throws -> Void

    private func produce(_ produce: Producing, _ context: ServerContext) async {
        do {
            try await produce(HTTPServer.BodyWriter(self))
            state.withLock { $0.finishBody(.done) }
        } catch {
            reportUnlessDisconnected(error, context)
            state.withLock { $0.finishBody(.failed) }
        }
    }

    private func response(
        _ work: @Sendable () async throws -> HTTPServer.Response, _ context: ServerContext
    ) async -> HTTPServer.Response {
        do {
            return sendable(try await work(), context)
        } catch HTTPServer.BodyError.tooLarge(let limit) {
            return refuse(HTTPServer.HTTPRequestError(413, "The request body is larger than \(limit) bytes."), context)
        } catch {
            reportUnlessDisconnected(error, context)
            return Self.mistake(context)
        }
    }

    /// The handler's response, or an error response if it cannot be sent.
    private func sendable(_ response: HTTPServer.Response, _ context: ServerContext) -> HTTPServer.Response {
        if !response.isUnsendable { return response }
        context.settings.note(.unsendable(status: response.status))
        return Self.mistake(context)
    }

    private static func mistake(_ context: ServerContext) -> HTTPServer.Response {
        context.answer(to: HTTPServer.HTTPRequestError(500, "Internal server error."))
    }

    /// True unless the request is HEAD or the status has no body.
    func sendsBody(_ response: HTTPServer.Response) -> Bool {
        head.method != "HEAD" && response.status != 204 && response.status != 304
    }

    private func reportUnlessDisconnected(_ error: any Error, _ context: ServerContext) {
        if !state.withLock({ $0.isGone }) { context.settings.note(.handlerFailed(error)) }
    }

    func refuse(_ refusal: HTTPServer.HTTPRequestError, _ context: ServerContext) -> HTTPServer.Response {
        context.settings.note(.refused(refusal, remoteAddress: remoteAddress))
        return context.answer(to: refusal)
    }

    /// The next part of the body; nil at its end.
    func nextPart() async throws(HTTPServer.BodyError) -> [UInt8]? {
        while true {
            switch state.withLock({ $0.removePart() }) {
            case .part(let part): return part
            case .end: return nil
            case .failed(let error): throw error
            case .nothing: if Task.isCancelled { throw .connectionLost }
            }
            await wait(for: .upload)
        }
    }

    /// Queues a part of the response body and waits until the queue has room (backpressure).
    func write(_ bytes: [UInt8]) async throws(HTTPServer.BodyError) {
        guard !bytes.isEmpty else { return }
        guard state.withLock({ $0.enqueue(bytes) }) else { throw .connectionLost }
        while true {
            let (isGone, hasRoom) = state.withLock { ($0.isGone, $0.hasRoom(limits.queuedBytes)) }
            if isGone { throw .connectionLost }
            if hasRoom { return }
            if Task.isCancelled { throw .connectionLost }
            await wait(for: .download)
        }
    }

    private func wait(for side: HTTPTransactionState.Side) async {
        let queueLimit = limits.queuedBytes
        await withCancellableContinuation { continuation in
            if !state.withLock({ $0.wait(continuation, for: side, queueLimit) }) { continuation.resume() }
        } onCancel: {
            state.withLock { $0.removeWaiter(side) }?.resume()
        }
    }
}

/// A response in libmicrohttpd's form, owned until it is queued.
struct NativeResponse: ~Copyable {
    private let handle: OpaquePointer?
    private let status: Int

    /// - Parameters:
    ///   - closing: True if the connection is closed after the response.
    ///   - exchange: The reader of a body that is streamed. Without one such a body is left out.
    init(_ response: HTTPServer.Response, closing: Bool, _ exchange: HTTPTransaction? = nil) {
        status = response.status
        handle =
            switch response.body {
            case .none: Self.whole([])
            case .bytes(let bytes):
                if bytes.count > ResponseBodyBuffer.wholeLimit, let exchange {
                    Self.streamed(length: bytes.count, exchange)
                } else {
                    Self.whole(bytes)
                }
            case .stream(let length, _):
                if let exchange { Self.streamed(length: length, exchange) } else { Self.whole([]) }
            }
        guard let handle else { return }
        // libmicrohttpd 0.9.75 sends the last chunk even for a response without a body, such as one to HEAD. The next
        // response would begin with it.
        if case .stream(length: nil, _) = response.body, let exchange, !exchange.sendsBody(response) {
            _ = cmicrohttp_end_with_connection(handle)
        }
        Self.add(response.headers, to: handle)
        if closing { MHD_add_response_header(handle, "Connection", "close") }
    }

    deinit {
        if let handle { MHD_destroy_response(handle) }
    }

    /// Queues the response. Returns `MHD_NO`, which closes the connection, if that fails.
    func queue(on connection: OpaquePointer) -> MHD_Result {
        guard let handle else { return .NO }
        return MHD_queue_response(connection, UInt32(clamping: status), handle)
    }

    static func add(_ headers: HTTPFields, to handle: OpaquePointer) {
        for field in headers.fields { MHD_add_response_header(handle, field.name, field.value) }
    }

    /// Creates a response with a copy of these bytes.
    static func whole(_ bytes: [UInt8]) -> OpaquePointer? {
        bytes.withUnsafeBytes { bytes in
            MHD_create_response_from_buffer(
                bytes.count, UnsafeMutableRawPointer(mutating: bytes.baseAddress), .RESPMEM_MUST_COPY)
        }
    }

    private static func streamed(length: Int?, _ exchange: HTTPTransaction) -> OpaquePointer? {
        let context = Unmanaged.passRetained(exchange)
        let length = length.map { UInt64($0) } ?? UInt64.max
        let handle = MHD_create_response_from_callback(
            length, ResponseBodyBuffer.blockBytes, onRead, context.toOpaque(), onReadEnd)
        if handle == nil { context.release() }
        return handle
    }
}
