import CLinux
import Glibc
import Threads

/// Writes log records to a descriptor, on a thread of its own.
///
/// A reader that does not read never holds up who logs: records wait in a queue, and when that is full they are dropped
/// and counted. The count is logged as soon as lines go out again.
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
    private let thread = Lock<WorkThread?>(nil)

    /// Starts the thread, which lives until ``shutdown(within:)``.
    /// - Parameters:
    ///   - descriptor: stays the caller's, who closes it after ``shutdown(within:)`` if at all.
    ///   - capacity: records that may wait.
    public init(descriptor: Int32 = STDERR_FILENO, format: LogFormat, capacity: Int = 8192) {
        self.descriptor = descriptor
        self.format = format
        self.capacity = capacity
        wakeup = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
        precondition(wakeup >= 0, "no eventfd: errno \(errno)")
        let started = WorkThread(name: "log", stackSize: 1 << 18) { self.run() }
        thread.withLock { $0 = started }
    }

    deinit { close(wakeup) }

    /// How many records were lost so far: the queue was full, the descriptor failed, or the time to shut down was over.
    public var dropped: Int { queue.withLock { $0.dropped } }

    /// Takes one record, or counts it as dropped.
    public func take(_ record: LogRecord) {
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

    /// Writes what waits, for as long as `limit` allows, and ends the thread. Records that come later are dropped. It
    /// blocks: call it last thing in `main`.
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
        // A reader that went away is an error of write(2) here, not the end of the process.
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
        // Whole lines up to what a pipe takes at once: lines of several processes on one pipe do not mix (pipe(7)).
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

    /// What a pipe that is ready takes without blocking (PIPE_BUF of Linux).
    private static let piece = 4096

    /// False when the descriptor failed or the time to shut down was over.
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
