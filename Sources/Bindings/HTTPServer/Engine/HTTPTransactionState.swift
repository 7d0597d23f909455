import CMicroHTTP
import Concurrency
import Glibc

/// A handle to a libmicrohttpd connection.
///
/// `@unchecked Sendable`: it is used only in callbacks on the connection's thread, and by `MHD_resume_connection` under
/// the lock of the transaction that holds it. The transaction drops it when libmicrohttpd reports the end of the
/// request.
struct ConnectionHandle: @unchecked Sendable {
    let pointer: OpaquePointer
}

/// The state under a transaction's lock. Its methods return the waiters to resume, so that they are resumed outside the
/// lock.
struct HTTPTransactionState {
    typealias Waiter = CheckedContinuation<Void, Never>

    /// The progress of a request.
    enum Stage {
        /// The head has arrived, and with it the whole request.
        case arriving
        /// The head has arrived, and the body is not requested yet. It may still be rejected.
        case head
        /// The body is being read.
        case body
        /// The body is being read and discarded.
        case discarding
        /// The whole request has arrived.
        case complete
        /// The response is being sent.
        case answering
    }

    /// The two queues that a task may wait for.
    enum Side {
        case upload, download
    }

    /// The waiters to resume and the task to cancel at the end, outside the lock.
    struct CleanupActions {
        var waiters: [Waiter] = []
        var task: Task<Void, Never>?

        func end(cancel: Bool) {
            if cancel { task?.cancel() }
            for waiter in waiters { waiter.resume() }
        }
    }

    /// Nil once libmicrohttpd has ended the request.
    var connection: ConnectionHandle?
    /// The connection's socket, open as long as `connection` is set.
    let socket: Int32
    var stage: Stage
    private var isStarted = false
    var answer: HTTPServer.Response?
    /// The shared form of the response, if it has one.
    private(set) var shared: HTTPServer.SharedResponse?
    /// True if the response was given in place of a handler that is late.
    private(set) var isRefused = false
    var mustClose = false
    /// True if the client has disconnected or the server has ended the request.
    var isGone = false
    var isSuspended = false
    var task: Task<Void, Never>?
    var upload: RequestBodyBuffer
    var download = ResponseBodyBuffer()
    /// The handler's deadline. While the response is sent: the time at which libmicrohttpd last asked for data.
    var deadline: ContinuousClock.Instant
    /// Activity counter. It grows with every event on the connection.
    var mark = 0
    /// The value of `mark` when the client was last seen to have closed its side.
    var leftMark: Int?

    init(_ connection: ConnectionHandle, socket: Int32, framing: RequestHead.Framing, limits: HTTPServer.Limits) {
        self.connection = connection
        self.socket = socket
        stage = framing == .none ? .arriving : .head
        upload = RequestBodyBuffer(isEnded: framing == .none)
        deadline = .now + limits.requestTime
    }

    /// True on the first call, when the handler is to be started.
    mutating func isFirstStep() -> Bool {
        defer { isStarted = true }
        return !isStarted && !isGone && !isRefused
    }

    // MARK: Suspending

    /// Suspends the connection. Call this only from a libmicrohttpd callback.
    mutating func suspend() {
        guard let connection, !isSuspended else { return }
        isSuspended = true
        mark += 1
        MHD_suspend_connection(connection.pointer)
    }

    mutating func resume() {
        guard let connection, isSuspended else { return }
        isSuspended = false
        mark += 1
        MHD_resume_connection(connection.pointer)
    }

    // MARK: The end

    /// Ends the request. libmicrohttpd notices that the socket is shut down.
    mutating func cut() -> CleanupActions {
        guard connection != nil, !isGone else { return CleanupActions() }
        let leftovers = giveUp()
        shutdown(socket, Int32(SHUT_RDWR))
        resume()
        return leftovers
    }

    /// Marks the request as over and drops its queues.
    mutating func giveUp() -> CleanupActions {
        isGone = true
        upload.buffer = []
        download.chunks = Deque()
        return CleanupActions(waiters: [removeWaiter(.upload), removeWaiter(.download)].compactMap(\.self), task: task)
    }

    /// Drops the connection handle and everything else that a retained request would keep alive.
    mutating func forget() {
        connection = nil
        answer = nil
        shared = nil
        task = nil
    }

    /// Sends a status where libmicrohttpd would not, because the request is incomplete. Nothing of the response has
    /// been sent yet.
    func tell(_ status: Int) {
        guard connection != nil, !isGone else { return }
        StatusLine.send(status, to: socket)
    }

    // MARK: Waiting

    mutating func removeWaiter(_ side: Side) -> Waiter? {
        switch side {
        case .upload:
            defer { upload.waiter = nil }
            return upload.waiter
        case .download:
            defer { download.waiter = nil }
            return download.waiter
        }
    }

    /// False if there is nothing left to wait for.
    mutating func wait(_ waiter: Waiter, for side: Side, _ queueLimit: Int) -> Bool {
        if isGone { return false }
        switch side {
        case .upload:
            precondition(upload.waiter == nil, "two tasks read one request body at the same time")
            if upload.isSettled || answer != nil { return false }
            upload.waiter = waiter
        case .download:
            precondition(download.waiter == nil, "two tasks write one response body at the same time")
            if hasRoom(queueLimit) { return false }
            download.waiter = waiter
        }
        return true
    }

    // MARK: The answer

    /// Sets the response. False if there is one already, or if the client has disconnected.
    mutating func give(_ response: HTTPServer.Response, _ shared: HTTPServer.SharedResponse? = nil) -> Bool {
        if isGone || answer != nil { return false }
        answer = response
        self.shared = shared
        if response.closesConnection { mustClose = true }
        resume()
        return true
    }

    /// Sets the response in place of a handler that is late, and closes the connection after it.
    /// - Returns: The handler's task, to be cancelled; nil if there is a response already, or no task yet.
    mutating func refuse(_ response: HTTPServer.Response) -> Task<Void, Never>? {
        mustClose = true
        guard give(response) else { return nil }
        isRefused = true
        return task
    }

    /// Hands the response to libmicrohttpd.
    mutating func begin(_ response: HTTPServer.Response, sendsBody: Bool) {
        stage = .answering
        deadline = .now
        mark += 1
        guard sendsBody else { return }
        switch response.body {
        case .none: break
        case .bytes(let bytes):
            // Short bodies are sent together with the head.
            guard bytes.count > ResponseBodyBuffer.wholeLimit else { break }
            download.add(bytes)
            download.end = .done
        case .stream(let length, _):
            // A small send buffer, so that a slow client is noticed here before the kernel has buffered megabytes for
            // it.
            var size: Int32 = 1 << 16
            if length == nil { setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &size, socklen_t(MemoryLayout<Int32>.size)) }
        }
    }
}
