import CMicroHTTP
import Glibc
import Threads

/// A connection of libmicrohttpd.
///
/// `@unchecked Sendable`: it is named only in callbacks of its own thread, and by `MHD_resume_connection` under the lock of the
/// exchange that holds it, which forgets it when libmicrohttpd says that the request has ended.
struct ConnectionHandle: @unchecked Sendable {
    let pointer: OpaquePointer
}

/// What stands under an exchange's lock. Whoever is to be woken is given back, to be woken outside of it.
struct ExchangeState {
    typealias Waiter = CheckedContinuation<Void, Never>

    /// How far it has come.
    enum Stage {
        /// The head is there, and with it the whole request.
        case arriving
        /// The head is there, and the body is not asked for yet: it may still be refused.
        case head
        /// The body is read.
        case body
        /// The body is read and thrown away.
        case discarding
        /// The whole request is there.
        case complete
        /// The answer is on its way.
        case answering
    }

    /// The two queues that a task may wait for.
    enum Side {
        case upload, download
    }

    /// Who has to hear of the end, outside the lock.
    struct Leftovers {
        var waiters: [Waiter] = []
        var task: Task<Void, Never>?

        func end(cancel: Bool) {
            if cancel { task?.cancel() }
            for waiter in waiters { waiter.resume() }
        }
    }

    /// Nil once libmicrohttpd has ended the request.
    var connection: ConnectionHandle?
    /// The connection's socket, open for as long as `connection` is there.
    let socket: Int32
    var stage: Stage
    private var isStarted = false
    var answer: HTTPServer.Response?
    /// The answer, where it is others' as well.
    private(set) var shared: HTTPServer.SharedResponse?
    var mustClose = false
    /// The client has left, or the request was ended from here.
    var isGone = false
    var isSuspended = false
    var task: Task<Void, Never>?
    var upload: Upload
    var download = Download()
    /// When the handler must have answered; then, since when libmicrohttpd has asked for nothing of the answer.
    var deadline: ContinuousClock.Instant
    /// Grows with all that happens on the connection.
    var mark = 0
    /// Where it stood when the client was last seen to have closed its side.
    var leftMark: Int?

    init(_ connection: ConnectionHandle, socket: Int32, framing: Head.Framing, limits: HTTPServer.Limits) {
        self.connection = connection
        self.socket = socket
        stage = framing == .none ? .arriving : .head
        upload = Upload(isEnded: framing == .none)
        deadline = .now + limits.requestTime
    }

    /// Whether the handler is to be started now.
    mutating func isFirstStep() -> Bool {
        defer { isStarted = true }
        return !isStarted && !isGone
    }

    // MARK: Suspending

    /// To be called in a callback of libmicrohttpd only.
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

    /// Ends the request from here: libmicrohttpd finds the socket shut down.
    mutating func cut() -> Leftovers {
        guard connection != nil, !isGone else { return Leftovers() }
        let leftovers = giveUp()
        shutdown(socket, Int32(SHUT_RDWR))
        resume()
        return leftovers
    }

    /// Nothing more comes or goes.
    mutating func giveUp() -> Leftovers {
        isGone = true
        upload.buffer = []
        download.chunks = Fifo()
        return Leftovers(waiters: [takeWaiter(.upload), takeWaiter(.download)].compactMap(\.self), task: task)
    }

    /// The connection is not to be named any more, and whoever keeps the request keeps nothing else.
    mutating func forget() {
        connection = nil
        answer = nil
        shared = nil
        task = nil
    }

    /// Says a status where libmicrohttpd would not, since the request is not complete. Nothing else has been sent of its answer.
    func tell(_ status: Int) {
        guard connection != nil, !isGone else { return }
        StatusLine.send(status, to: socket)
    }

    // MARK: Waiting

    mutating func takeWaiter(_ side: Side) -> Waiter? {
        switch side {
        case .upload:
            defer { upload.waiter = nil }
            return upload.waiter
        case .download:
            defer { download.waiter = nil }
            return download.waiter
        }
    }

    /// False when there is nothing to wait for any more.
    mutating func wait(_ waiter: Waiter, for side: Side, _ queueLimit: Int) -> Bool {
        if isGone { return false }
        switch side {
        case .upload:
            precondition(upload.waiter == nil, "a body is pulled by two tasks at once")
            if upload.isSettled || answer != nil { return false }
            upload.waiter = waiter
        case .download:
            precondition(download.waiter == nil, "a body is written by two tasks at once")
            if hasRoom(queueLimit) { return false }
            download.waiter = waiter
        }
        return true
    }

    // MARK: The answer

    /// Takes the handler's answer. False when there is one already, or nobody to send it to.
    mutating func give(_ response: HTTPServer.Response, _ shared: HTTPServer.SharedResponse? = nil) -> Bool {
        if isGone || answer != nil { return false }
        answer = response
        self.shared = shared
        if response.closesConnection { mustClose = true }
        resume()
        return true
    }

    /// The answer goes to libmicrohttpd now.
    mutating func begin(_ response: HTTPServer.Response, sendsBody: Bool) {
        stage = .answering
        deadline = .now
        mark += 1
        guard sendsBody else { return }
        switch response.body {
        case .none: break
        case .bytes(let bytes):
            // Short ones go along with the head.
            guard bytes.count > Download.wholeLimit else { break }
            download.add(bytes)
            download.end = .done
        case .stream(let length, _):
            // A client that does not read is to be noticed here, not when the kernel has taken megabytes for it.
            var size: Int32 = 1 << 16
            if length == nil { setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &size, socklen_t(MemoryLayout<Int32>.size)) }
        }
    }
}
