import CMicroHTTP
import Formats
import Glibc
import Threads

/// One request and its answer.
///
/// Three parties meet here under one lock: libmicrohttpd's thread of the connection, which calls in and may be told to suspend;
/// the handler's task, which pulls, answers and writes; and the sweep, which ends what takes too long. Whoever has something for
/// a suspended connection resumes it, exactly once for each time it was suspended.
///
/// A handler may keep a request, and with it this, for as long as it likes: so it holds nothing of the server's.
final class Exchange: Sendable {
    /// What libmicrohttpd is to do.
    enum Step {
        /// Go on: read the body, or wait for a resume.
        case goOn
        /// Send this, by what it shares with others where it does.
        case answer(HTTPServer.Response, HTTPServer.SharedResponse?, closing: Bool)
        /// Close the connection.
        case end
    }

    let head: Head
    let limits: HTTPServer.Limits
    let remoteAddress: String
    let state: Lock<ExchangeState>

    init(
        _ head: Head, _ connection: ConnectionHandle, socket: Int32, remoteAddress: String, _ limits: HTTPServer.Limits
    ) {
        self.head = head
        self.limits = limits
        self.remoteAddress = remoteAddress
        state = Lock(ExchangeState(connection, socket: socket, framing: head.framing, limits: limits))
    }

    // MARK: On libmicrohttpd's thread

    /// Runs the handler, on this thread up to where it first waits.
    private func start(_ context: ServerContext) {
        let body = HTTPServer.RequestBody(head.framing, self)
        switch context.replier(HTTPServer.Request(head, remoteAddress: remoteAddress, body: body)) {
        case .shared(let shared): _ = state.withLock { $0.give(shared.response, shared) }
        case .now(let response):
            if let produce = give(sendable(response, context)) { begin { await self.produce(produce, context) } }
        case .later(let work): begin { await self.run(work, context) }
        }
    }

    private func begin(_ work: @escaping @Sendable () async -> Void) {
        let task = Task.immediate { await work() }
        let isOver = state.withLock { state in
            state.task = task
            return state.isGone
        }
        if isOver { task.cancel() }
    }

    /// libmicrohttpd has come to the end of a head that announces a body, or of the whole request, or was resumed there.
    func proceed(_ context: ServerContext) -> Step {
        if state.withLock({ $0.isFirstStep() }) { start(context) }
        let (step, waiter) = state.withLock { state in
            let waiter = state.requestCame()
            return (nextStep(&state), waiter)
        }
        waiter?.resume()
        return step
    }

    private func nextStep(_ state: inout ExchangeState) -> Step {
        if state.isGone { return .end }
        if let answer = state.answer {
            // The rest of a short body is thrown away, and the connection kept. A client that waits sends none.
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

    /// Takes a part of the body. Gives back how many bytes it took, nil when the connection is to be closed.
    func received(_ bytes: UnsafeRawBufferPointer) -> Int? {
        let (taken, waiter) = state.withLock { $0.received(bytes, limits) }
        waiter?.resume()
        return taken
    }

    /// Puts the next part of the answer's body into `buffer`: how many bytes, or one of libmicrohttpd's signs for its end.
    func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        let (count, waiter) = state.withLock { $0.read(into: buffer, queueLimit: limits.queuedBytes) }
        waiter?.resume()
        return count
    }

    /// libmicrohttpd is done with the request, and the connection is not to be named any more.
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

    /// The client is to have this, if it is still there. Gives back what then makes the body, where there is one to be made.
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
            noteUnlessGone(error, context)
            state.withLock { $0.finishBody(.failed) }
        }
    }

    private func response(
        _ work: @Sendable () async throws -> HTTPServer.Response, _ context: ServerContext
    ) async -> HTTPServer.Response {
        do {
            return sendable(try await work(), context)
        } catch HTTPServer.BodyError.tooLarge(let limit) {
            return refuse(HTTPServer.Refusal(413, "The body is larger than \(limit) bytes."), context)
        } catch {
            noteUnlessGone(error, context)
            return Self.mistake(context)
        }
    }

    /// The handler's answer, or what is said in its place where it is none.
    private func sendable(_ response: HTTPServer.Response, _ context: ServerContext) -> HTTPServer.Response {
        if !response.isUnsendable { return response }
        context.settings.note(.unsendable(status: response.status))
        return Self.mistake(context)
    }

    private static func mistake(_ context: ServerContext) -> HTTPServer.Response {
        context.answer(to: HTTPServer.Refusal(500, "The server has made a mistake."))
    }

    /// HEAD and some statuses have none.
    func sendsBody(_ response: HTTPServer.Response) -> Bool {
        head.method != "HEAD" && response.status != 204 && response.status != 304
    }

    private func noteUnlessGone(_ error: any Error, _ context: ServerContext) {
        if !state.withLock({ $0.isGone }) { context.settings.note(.handlerFailed(error)) }
    }

    func refuse(_ refusal: HTTPServer.Refusal, _ context: ServerContext) -> HTTPServer.Response {
        context.settings.note(.refused(refusal, remoteAddress: remoteAddress))
        return context.answer(to: refusal)
    }

    /// The next part of the body; nil at its end.
    func nextPart() async throws(HTTPServer.BodyError) -> [UInt8]? {
        while true {
            switch state.withLock({ $0.takePart() }) {
            case .part(let part): return part
            case .end: return nil
            case .failed(let error): throw error
            case .nothing: if Task.isCancelled { throw .connectionLost }
            }
            await wait(for: .upload)
        }
    }

    /// Sends a part of the answer's body, and waits for room behind it.
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

    private func wait(for side: ExchangeState.Side) async {
        let queueLimit = limits.queuedBytes
        await withCancellableContinuation { continuation in
            if !state.withLock({ $0.wait(continuation, for: side, queueLimit) }) { continuation.resume() }
        } onCancel: {
            state.withLock { $0.takeWaiter(side) }?.resume()
        }
    }
}

/// A response in libmicrohttpd's form, which it owns until it is queued.
struct Answer: ~Copyable {
    private let handle: OpaquePointer?
    private let status: Int

    /// - Parameters:
    ///   - closing: whether the connection is closed behind it.
    ///   - exchange: what reads a body that is not handed over as a whole; without one such a body is left out.
    init(_ response: HTTPServer.Response, closing: Bool, _ exchange: Exchange? = nil) {
        status = response.status
        handle =
            switch response.body {
            case .none: Self.whole([])
            case .bytes(let bytes):
                if bytes.count > Download.wholeLimit, let exchange {
                    Self.streamed(length: bytes.count, exchange)
                } else {
                    Self.whole(bytes)
                }
            case .stream(let length, _):
                if let exchange { Self.streamed(length: length, exchange) } else { Self.whole([]) }
            }
        guard let handle else { return }
        // libmicrohttpd 0.9.75 sends the last chunk of a body even where there is none, as for HEAD: the next answer would begin with it.
        if case .stream(length: nil, _) = response.body, let exchange, !exchange.sendsBody(response) {
            _ = cmicrohttp_end_with_connection(handle)
        }
        Self.add(response.headers, to: handle)
        if closing { MHD_add_response_header(handle, "Connection", "close") }
    }

    deinit {
        if let handle { MHD_destroy_response(handle) }
    }

    /// Has it sent. `MHD_NO`, which closes the connection, where that cannot be.
    func queue(on connection: OpaquePointer) -> MHD_Result {
        guard let handle else { return .NO }
        return MHD_queue_response(connection, UInt32(clamping: status), handle)
    }

    static func add(_ headers: HTTPFields, to handle: OpaquePointer) {
        for field in headers.fields { MHD_add_response_header(handle, field.name, field.value) }
    }

    /// A response with these bytes, which are copied.
    static func whole(_ bytes: [UInt8]) -> OpaquePointer? {
        bytes.withUnsafeBytes { bytes in
            MHD_create_response_from_buffer(
                bytes.count, UnsafeMutableRawPointer(mutating: bytes.baseAddress), .RESPMEM_MUST_COPY)
        }
    }

    private static func streamed(length: Int?, _ exchange: Exchange) -> OpaquePointer? {
        let context = Unmanaged.passRetained(exchange)
        let length = length.map { UInt64($0) } ?? UInt64.max
        let handle = MHD_create_response_from_callback(
            length, Download.blockBytes, onRead, context.toOpaque(), onReadEnd)
        if handle == nil { context.release() }
        return handle
    }
}
