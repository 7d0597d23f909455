import CLinux
import Glibc

/// A fixed number of threads for work that blocks or is CPU-bound: libvips, files, DNS lookups.
///
/// Work waits in one first-in-first-out queue and occupies no thread of the cooperative pool while it waits or runs.
/// Timers, heartbeats and lease renewals stay on time regardless of the CPU load.
public final class ThreadPool: Sendable {
    private let queue: BlockingQueue
    private let threads: [NamedThread]

    /// The number of threads.
    public var width: Int { threads.count }

    /// Creates a pool.
    /// - Parameters:
    ///   - onThreadEnd: A closure that each thread runs last, for a library's per-thread cleanup.
    public init(name: String, threads count: Int, onThreadEnd: @escaping @Sendable () -> Void = {}) {
        precondition(count > 0, "a pool needs at least one thread")
        let queue = BlockingQueue()
        self.queue = queue
        threads = (0..<count).map { index in
            NamedThread(name: "\(name)-\(index)") {
                while let work = queue.next() { work() }
                onThreadEnd()
            }
        }
    }

    /// Runs `work` on a thread of the pool and returns its result or throws its error.
    ///
    /// Cancelling the task neither removes the work from the queue nor stops it. Work that can be interrupted must
    /// check a separate token.
    public func run<Success>(_ work: @escaping @Sendable () throws -> sending Success) async throws -> sending Success {
        try await withCheckedThrowingContinuation { continuation in
            let accepted = queue.add {
                continuation.resume(with: Result(catching: work))
            }
            if !accepted { continuation.resume(throwing: ThreadPoolClosed()) }
        }
    }

    /// Runs `work` on a thread of the pool, for callers that learn of its end in another way.
    /// - Returns: False if the pool has been shut down and the work is not run.
    public func perform(_ work: @escaping @Sendable () -> Void) -> Bool { queue.add(work) }

    /// Finishes the queued work, ends the threads and waits for them. Blocks: never call it on a task's thread.
    public func shutdown() {
        queue.close()
        for thread in threads { thread.join() }
    }
}

/// An error for work that was submitted to a pool after its shutdown.
public struct ThreadPoolClosed: Error {
    /// Creates the error.
    public init() {}
}

/// The queue of a pool.
private final class BlockingQueue: Sendable {
    typealias Work = @Sendable () -> Void

    private struct State {
        var work = Deque<Work>()
        var isClosed = false
    }

    private let state = ConditionLock(State())

    /// Enqueues work. False if the queue is closed.
    func add(_ work: @escaping Work) -> Bool {
        let isTaken = state.withLock { state in
            if !state.isClosed { state.work.append(work) }
            return !state.isClosed
        }
        if isTaken { state.signal() }
        return isTaken
    }

    /// Waits for work; nil if the queue is closed and empty.
    func next() -> Work? {
        state.wait { state -> Work?? in
            if let work = state.work.popFirst() { return work }
            return state.isClosed ? .some(nil) : nil
        }
    }

    func close() {
        state.withLock { $0.isClosed = true }
        state.broadcast()
    }
}

/// Runs a blocking call on a new thread, so that no thread of the cooperative pool is blocked. For rare calls, such as
/// opening, closing and administration.
public func blocking<Success: Sendable, Failure: Error>(
    _ work: @escaping @Sendable () throws(Failure) -> Success
) async throws(Failure) -> Success {
    let result: Result<Success, Failure> = await withCheckedContinuation { continuation in
        _ = NamedThread(name: "blocking") {
            do throws(Failure) {
                continuation.resume(returning: .success(try work()))
            } catch {
                continuation.resume(returning: .failure(error))
            }
        }
    }
    return try result.get()
}

/// A named pthread that runs one closure and can be joined.
///
/// For C libraries that block or that require all their calls on one thread. Do not use it where an actor suffices.
public final class NamedThread: Sendable {
    private let handle: Lock<pthread_t?>

    /// The size of each stack in bytes, which libvips needs. Less would save nothing, because pages are allocated on
    /// first use. A part is taken by the thread-local variables of libraries (librdkafka: 15 KiB), and the first use of
    /// a generic Swift type takes tens of KiB.
    private static let stackSize = 1 << 20

    /// Starts the thread.
    /// - Parameters:
    ///   - name: The name that `top -H` and debuggers show. The kernel truncates it to 15 bytes.
    ///   - body: The closure to run. The thread ends when it returns.
    public init(name: String, _ body: @escaping @Sendable () -> Void) {
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        pthread_attr_setstacksize(&attributes, Self.stackSize)

        let start = Unmanaged.passRetained(Start(name: name, body: body))
        var thread = pthread_t()
        let code = pthread_create(&thread, &attributes, runThread, start.toOpaque())
        precondition(code == 0, "cannot start thread \(name): errno \(code)")
        handle = Lock(thread)
    }

    /// Waits until the closure has returned. A second call returns immediately. Blocks: never call it on a task's
    /// thread.
    public func join() {
        let thread = handle.withLock { held in
            defer { held = nil }
            return held
        }
        if let thread { pthread_join(thread, nil) }
    }

    deinit {
        // Detach a thread that was not joined, so that the system reclaims it when it ends.
        if let thread = handle.withLock({ $0 }) { pthread_detach(thread) }
    }
}

private final class Start: Sendable {
    let name: String
    let body: @Sendable () -> Void

    init(name: String, body: @escaping @Sendable () -> Void) {
        self.name = name
        self.body = body
    }
}

// A plain function: a closure made in isolated code would trap when C calls it on another thread.
private func runThread(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    let start = Unmanaged<Start>.fromOpaque(context!).takeRetainedValue()
    clinux_name_thread(start.name)
    // C libraries write to sockets whose peer may be gone. That must be an error of the write and not end the process.
    var mask = sigset_t()
    sigemptyset(&mask)
    sigaddset(&mask, SIGPIPE)
    pthread_sigmask(SIG_BLOCK, &mask, nil)
    start.body()
    return nil
}
