import CMicroHTTP
import Threads

/// The body of an answer on its way to the client.
struct Download {
    enum End {
        case done, failed
    }

    /// Bodies up to so many bytes are handed over as a whole; longer ones part by part, so that it shows whether the client
    /// takes them.
    static let wholeLimit = 1 << 16
    /// How many bytes libmicrohttpd asks for at once.
    static let blockBytes = 1 << 15

    var chunks = Fifo<[UInt8]>()
    /// How much of the first chunk has gone.
    private var offset = 0
    private(set) var waiting = 0
    var end: End?
    var waiter: ExchangeState.Waiter?

    mutating func add(_ bytes: [UInt8]) {
        chunks.append(bytes)
        waiting += bytes.count
    }

    /// Moves as much as there is, or fits.
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

extension ExchangeState {
    func hasRoom(_ limit: Int) -> Bool { download.waiting <= limit }

    /// Takes a part from the handler. False when nobody is there for it.
    mutating func enqueue(_ bytes: [UInt8]) -> Bool {
        if isGone { return false }
        download.add(bytes)
        // Before the answer is begun it is not the body that is waited for.
        if stage == .answering { resumeStream() }
        return true
    }

    mutating func finishBody(_ end: Download.End) {
        if isGone || download.end != nil { return }
        download.end = end
        if stage == .answering { resumeStream() }
    }

    private mutating func resumeStream() {
        guard isSuspended else { return }
        // What the client does not take from now on is its own delay.
        deadline = .now
        resume()
    }

    /// Gives a part to libmicrohttpd: its length, or one of its signs for the end.
    mutating func read(into buffer: UnsafeMutableRawBufferPointer, queueLimit: Int) -> (Int, Waiter?) {
        if isGone { return (Int(cmicrohttp_end_with_error), nil) }
        deadline = .now
        mark += 1
        let count = download.move(into: buffer)
        if count > 0 { return (count, hasRoom(queueLimit) ? takeWaiter(.download) : nil) }
        switch download.end {
        case .done: return (Int(cmicrohttp_end_of_stream), nil)
        case .failed: return (Int(cmicrohttp_end_with_error), nil)
        case nil:
            suspend()
            return (0, nil)
        }
    }
}
