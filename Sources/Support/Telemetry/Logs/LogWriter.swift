import CLinux
import Concurrency
import Glibc

/// A log sink that writes records to a descriptor on a dedicated thread.
///
/// A slow reader never blocks the callers: records wait in a queue, and when it is full they are dropped and counted.
/// The count is logged as soon as lines can be written again.
public final class LogWriter: LogSink {
    private struct Queue {
        var records: [LogRecord] = []
        var unsaid = 0
        var dropped = 0
        var isAwake = false
        var deadline: ContinuousClock.Instant?
    }

    private let descriptor: Int32
    private let format: LogFormat
    private let capacity: Int
    private let wakeup: Int32
    private let queue = Lock(Queue())
    private let thread = Lock<NamedThread?>(nil)

    /// Starts the thread, which runs until ``shutdown(within:)``.
    /// - Parameters:
    ///   - descriptor: The descriptor, owned by the caller. Close it only after ``shutdown(within:)``.
    ///   - capacity: The maximum number of queued records.
    public init(descriptor: Int32 = STDERR_FILENO, format: LogFormat, capacity: Int = 8192) {
        self.descriptor = descriptor
        self.format = format
        self.capacity = capacity
        wakeup = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
        precondition(wakeup >= 0, "cannot create an eventfd: errno \(errno)")
        let started = NamedThread(name: "log") { self.run() }
        thread.withLock { $0 = started }
    }

    deinit { close(wakeup) }

    /// The number of records lost so far because the queue was full, the descriptor failed, or the shutdown timed out.
    public var dropped: Int { queue.withLock { $0.dropped } }

    /// Enqueues a record, or counts it as dropped.
    public func log(_ record: LogRecord) {
        let mustWake = queue.withLock { queue in
            guard queue.records.count < capacity, queue.deadline == nil else {
                queue.dropped += 1
                queue.unsaid += 1
                return false
            }
            queue.records.append(record)
            defer { queue.isAwake = true }
            return !queue.isAwake
        }
        if mustWake { wake() }
    }

    /// Writes the queued records within `limit` and ends the thread. Later records are dropped. Blocks: call it last in
    /// `main`.
    public func shutdown(within limit: Duration = .seconds(2)) {
        queue.withLock { queue in
            if queue.deadline == nil { queue.deadline = .now + limit }
        }
        wake()
        thread.withLock { $0 }?.join()
    }

    // MARK: The thread

    private func wake() {
        var one: UInt64 = 1
        _ = write(wakeup, &one, 8)
    }

    private func run() {
        // If the reader has gone, write(2) returns an error instead of ending the process.
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGPIPE)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
        while true {
            let (records, unsaid, isEnding) = queue.withLock { queue in
                defer {
                    queue.isAwake = !queue.records.isEmpty
                    queue.records = []
                    queue.unsaid = 0
                }
                return (queue.records, queue.unsaid, queue.deadline != nil)
            }
            if !records.isEmpty {
                writeLines(of: records, unsaid: unsaid)
            } else if isEnding {
                return
            } else {
                var waited = pollfd(fd: wakeup, events: Int16(POLLIN), revents: 0)
                poll(&waited, 1, -1)
                var count: UInt64 = 0
                _ = read(wakeup, &count, 8)
            }
        }
    }

    private func writeLines(of records: [LogRecord], unsaid: Int) {
        // Write whole lines up to PIPE_BUF, so that lines of several processes on one pipe do not mix (pipe(7)).
        var batch: [UInt8] = []
        var count = 0
        func flush() {
            if !writeAll(batch) { queue.withLock { $0.dropped += count } }
            batch.removeAll(keepingCapacity: true)
            count = 0
        }
        for record in records {
            let line = format.line(record)
            if batch.count + line.count > Self.piece { flush() }
            batch += line
            count += 1
        }
        flush()
        if unsaid > 0 {
            let notice = LogRecord(level: .warning, message: "log records dropped", fields: ["count": unsaid])
            _ = writeAll(format.line(notice))
        }
    }

    /// The number of bytes that a ready pipe accepts without blocking (PIPE_BUF on Linux).
    private static let piece = 4096

    /// False if the descriptor failed or the shutdown timed out.
    private func writeAll(_ bytes: [UInt8]) -> Bool {
        bytes.withUnsafeBytes { bytes in
            var rest = bytes[...]
            while !rest.isEmpty {
                guard waitUntilWritable() else { return false }
                let written = write(
                    descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, min(rest.count, Self.piece))
                if written > 0 {
                    rest = rest.dropFirst(written)
                } else if errno != EINTR && errno != EAGAIN {
                    return false
                }
            }
            return true
        }
    }

    private func waitUntilWritable() -> Bool {
        while true {
            if let deadline = queue.withLock({ $0.deadline }), deadline <= .now { return false }
            var waited = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
            if poll(&waited, 1, 50) > 0 { return true }
        }
    }
}
