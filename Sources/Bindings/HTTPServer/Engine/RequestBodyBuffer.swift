import CMicroHTTP

/// The buffer between the client's request body and the handler.
struct RequestBodyBuffer {
    /// The number of buffered bytes at which reading from the client stops until the handler consumes them.
    static let bufferLimit = 1 << 16

    var buffer: [UInt8] = []
    /// The number of bytes received, and the number of bytes discarded.
    var total = 0
    var discarded = 0
    /// True if the handler has requested the body.
    var isWanted = false
    var isEnded: Bool
    var failure: HTTPServer.BodyError?
    var waiter: HTTPTransactionState.Waiter?

    init(isEnded: Bool) { self.isEnded = isEnded }

    /// True if there is a part, an end or an error to return.
    var isSettled: Bool { !buffer.isEmpty || isEnded || failure != nil }
}

extension HTTPTransactionState {
    enum Part {
        case part([UInt8])
        case end
        case failed(HTTPServer.BodyError)
        /// Nothing has arrived yet.
        case nothing
    }

    /// Returns the next part of the body to the handler.
    mutating func removePart() -> Part {
        if let failure = upload.failure { return .failed(failure) }
        // The server has responded instead of the handler.
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

    /// Handles a call of libmicrohttpd without a part of the body. The whole request has arrived, unless its body is
    /// about to be read.
    mutating func requestCame() -> Waiter? {
        switch stage {
        case .arriving, .body, .discarding:
            stage = .complete
            upload.isEnded = true
            return removeWaiter(.upload)
        case .head, .complete, .answering: return nil
        }
    }

    /// Accepts a part of the body. Returns the number of bytes consumed, or nil if the connection is to be closed.
    mutating func received(_ bytes: UnsafeRawBufferPointer, _ limits: HTTPServer.Limits) -> (Int?, Waiter?) {
        if isGone { return (nil, nil) }
        var waiter: Waiter?
        if stage == .body, answer == nil {
            if upload.total + bytes.count <= limits.bodyBytes {
                guard upload.buffer.count < RequestBodyBuffer.bufferLimit else {
                    suspend()
                    return (0, nil)
                }
                mark += 1
                upload.total += bytes.count
                upload.buffer.append(contentsOf: bytes)
                return (bytes.count, removeWaiter(.upload))
            }
            upload.failure = .tooLarge(limit: limits.bodyBytes)
            upload.buffer = []
            waiter = removeWaiter(.upload)
        }
        stage = .discarding
        if upload.discarded + bytes.count <= limits.unreadBytes {
            mark += 1
            upload.discarded += bytes.count
            return (bytes.count, waiter)
        }
        // No regular response is possible before the end of the body, which is too far away.
        guard let answer else {
            suspend()
            return (0, waiter)
        }
        tell(answer.status)
        return (nil, waiter)
    }
}
