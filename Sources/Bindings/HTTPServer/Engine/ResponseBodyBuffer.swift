import CMicroHTTP
import Concurrency

/// The buffer between the handler's response body and the client.
struct ResponseBodyBuffer {
    enum End {
        case done, failed
    }

    /// The largest body that is passed to libmicrohttpd as a whole. Longer bodies are sent in parts, which shows
    /// whether the client reads them.
    static let wholeLimit = 1 << 16
    /// The number of bytes that libmicrohttpd asks for at once.
    static let blockBytes = 1 << 15

    var chunks = Deque<[UInt8]>()
    /// The number of bytes of the first chunk that have been sent.
    private var offset = 0
    private(set) var waiting = 0
    var end: End?
    var waiter: HTTPTransactionState.Waiter?

    mutating func add(_ bytes: [UInt8]) {
        chunks.append(bytes)
        waiting += bytes.count
    }

    /// Moves as many bytes as are available and fit.
    mutating func move(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        var moved = 0
        while moved < buffer.count, let chunk = chunks.first {
            let count = min(chunk.count - offset, buffer.count - moved)
            chunk.withUnsafeBytes { bytes in
                UnsafeMutableRawBufferPointer(rebasing: buffer[moved...]).copyMemory(
                    from: UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + count]))
            }
            moved += count
            offset += count
            if offset == chunk.count {
                _ = chunks.popFirst()
                offset = 0
            }
        }
        waiting -= moved
        return moved
    }
}

extension HTTPTransactionState {
    func hasRoom(_ limit: Int) -> Bool { download.waiting <= limit }

    /// Queues a part from the handler. False if the client has disconnected.
    mutating func enqueue(_ bytes: [UInt8]) -> Bool {
        if isGone { return false }
        download.add(bytes)
        // Before the response has begun, the connection waits for something else.
        if stage == .answering { resumeStream() }
        return true
    }

    mutating func finishBody(_ end: ResponseBodyBuffer.End) {
        if isGone || download.end != nil { return }
        download.end = end
        if stage == .answering { resumeStream() }
    }

    private mutating func resumeStream() {
        guard isSuspended else { return }
        // From now on a delay is the client's.
        deadline = .now
        resume()
    }

    /// Copies a part for libmicrohttpd. Returns its length, or one of libmicrohttpd's end codes.
    mutating func read(into buffer: UnsafeMutableRawBufferPointer, queueLimit: Int) -> (Int, Waiter?) {
        if isGone { return (Int(cmicrohttp_end_with_error), nil) }
        deadline = .now
        mark += 1
        let count = download.move(into: buffer)
        if count > 0 { return (count, hasRoom(queueLimit) ? removeWaiter(.download) : nil) }
        switch download.end {
        case .done: return (Int(cmicrohttp_end_of_stream), nil)
        case .failed: return (Int(cmicrohttp_end_with_error), nil)
        case nil:
            suspend()
            return (0, nil)
        }
    }
}
