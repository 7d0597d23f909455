import CMicroHTTP

/// The body of a request on its way to the handler.
struct Upload {
    /// So many bytes wait for the handler before nothing more is read.
    static let bufferLimit = 1 << 16

    var buffer: [UInt8] = []
    /// All bytes that came, and those of them that nobody got.
    var total = 0
    var discarded = 0
    /// Whether the handler has asked for the body.
    var isWanted = false
    var isEnded: Bool
    var failure: HTTPServer.BodyError?
    var waiter: ExchangeState.Waiter?

    init(isEnded: Bool) { self.isEnded = isEnded }

    /// Whether there is something to give.
    var isSettled: Bool { !buffer.isEmpty || isEnded || failure != nil }
}

extension ExchangeState {
    enum Part {
        case part([UInt8])
        case end
        case failed(HTTPServer.BodyError)
        /// Nothing has come yet.
        case nothing
    }

    /// What there is of the body, for the handler.
    mutating func takePart() -> Part {
        if let failure = upload.failure { return .failed(failure) }
        // The door has answered in the handler's place.
        if isGone || answer != nil { return .failed(.connectionLost) }
        if !upload.buffer.isEmpty {
            defer { upload.buffer = [] }
            if stage == .body { resume() }
            return .part(upload.buffer)
        }
        if upload.isEnded { return .end }
        upload.isWanted = true
        if stage == .head { resume() }
        return .nothing
    }

    /// libmicrohttpd calls without a part of the body: the whole request is there, unless it is about to be read.
    mutating func requestCame() -> Waiter? {
        switch stage {
        case .arriving, .body, .discarding:
            stage = .complete
            upload.isEnded = true
            return takeWaiter(.upload)
        case .head, .complete, .answering: return nil
        }
    }

    /// Takes a part of the body: how many bytes, nil when the connection is to be closed.
    mutating func received(_ bytes: UnsafeRawBufferPointer, _ limits: HTTPServer.Limits) -> (Int?, Waiter?) {
        if isGone { return (nil, nil) }
        var waiter: Waiter?
        if stage == .body, answer == nil {
            if upload.total + bytes.count <= limits.bodyBytes {
                guard upload.buffer.count < Upload.bufferLimit else {
                    suspend()
                    return (0, nil)
                }
                mark += 1
                upload.total += bytes.count
                upload.buffer.append(contentsOf: bytes)
                return (bytes.count, takeWaiter(.upload))
            }
            upload.failure = .tooLarge(limit: limits.bodyBytes)
            upload.buffer = []
            waiter = takeWaiter(.upload)
        }
        stage = .discarding
        if upload.discarded + bytes.count <= limits.unreadBytes {
            mark += 1
            upload.discarded += bytes.count
            return (bytes.count, waiter)
        }
        // It cannot be answered in the ordinary way before its end, which is too far.
        guard let answer else {
            suspend()
            return (0, waiter)
        }
        tell(answer.status)
        return (nil, waiter)
    }
}
