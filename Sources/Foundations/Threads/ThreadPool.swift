import CLinux
import Glibc

/// A fixed number of threads for work that blocks or burns CPU: libvips, files, name look-ups.
///
/// Work waits in one first-in-first-out queue and holds no thread of the cooperative pool while it waits or runs, so timers,
/// heartbeats and leases stay on time however busy the processors are.
public final class ThreadPool: Sendable {
    private let queue: WorkQueue
    private let threads: [WorkThread]

    /// How many pieces of work run at once.
    public var width: Int { threads.count }

    /// - Parameters:
    ///   - onThreadEnd: runs on each thread as its last act; a library's per-thread clean-up belongs here.
    public init(
        name: String, threads count: Int, stackSize: Int = 1 << 20, onThreadEnd: @escaping @Sendable () -> Void = {}
    ) {
        precondition(count > 0, "a pool needs a thread")
        let queue = WorkQueue()
        self.queue = queue
        threads = (0..<count).map { index in
            WorkThread(name: "\(name)-\(index)", stackSize: stackSize) {
                while let work = queue.next() { work() }
                onThreadEnd()
            }
        }
    }

    /// Runs `work` on a thread of the pool and gives back what it returned or threw.
    ///
    /// Cancelling the task does not take work out of the queue or stop it: what can be stopped half way looks at a token of
    /// its own.
    public func run<Success>(_ work: @escaping @Sendable () throws -> sending Success) async throws -> sending Success {
        try await withCheckedThrowingContinuation { continuation in
            let accepted = queue.add {
                continuation.resume(with: Result(catching: work))
            }
            if !accepted { continuation.resume(throwing: ThreadPoolClosed()) }
        }
    }

    /// Runs `work` on a thread of the pool, for callers that hear of its end in their own way.
    /// - Returns: false when the pool has been shut down, and the work is not done.
    public func perform(_ work: @escaping @Sendable () -> Void) -> Bool { queue.add(work) }

    /// Lets queued work finish, ends the threads and waits for them. It blocks: never call it on a task's thread.
    public func shutdown() {
        queue.close()
        for thread in threads { thread.join() }
    }
}

/// Work was given to a pool that has been shut down.
public struct ThreadPoolClosed: Error {
    /// The error has nothing to say but that it happened.
    public init() {}
}

/// The queue of a pool.
private final class WorkQueue: Sendable {
    typealias Work = @Sendable () -> Void

    private struct State {
        var work = Fifo<Work>()
        var isClosed = false
    }

    private let state = ConditionLock(State())

    /// False when the queue is closed and the work was not taken.
    func add(_ work: @escaping Work) -> Bool {
        let isTaken = state.withLock { state in
            if !state.isClosed { state.work.append(work) }
            return !state.isClosed
        }
        if isTaken { state.signal() }
        return isTaken
    }

    /// Waits for work; nil when the queue is closed and empty.
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

/// Runs a call that blocks on a thread made for it, so that no thread of the cooperative pool waits. For rare calls: opening,
/// closing, administration.
public func blocking<Success: Sendable, Failure: Error>(
    _ work: @escaping @Sendable () throws(Failure) -> Success
) async throws(Failure) -> Success {
    let result: Result<Success, Failure> = await withCheckedContinuation { continuation in
        _ = WorkThread(name: "blocking") {
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
/// For C libraries that block or that want all their calls from one thread; never for what an actor can do.
public final class WorkThread: Sendable {
    private let handle: Lock<pthread_t?>

    /// Starts the thread at once.
    /// - Parameters:
    ///   - name: shown by `top -H` and debuggers; the kernel keeps its first 15 bytes.
    ///   - stackSize: bytes; libvips wants at least 1 MiB.
    ///   - body: runs once; the thread ends when it returns.
    public init(name: String, stackSize: Int = 1 << 20, _ body: @escaping @Sendable () -> Void) {
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        pthread_attr_setstacksize(&attributes, max(stackSize, 1 << 16))

        let start = Unmanaged.passRetained(Start(name: name, body: body))
        var thread = pthread_t()
        let code = pthread_create(&thread, &attributes, runThread, start.toOpaque())
        precondition(code == 0, "cannot start thread \(name): errno \(code)")
        handle = Lock(thread)
    }

    /// Waits until the closure has returned; a second call returns at once. It blocks: never call it on a task's thread.
    public func join() {
        let thread = handle.withLock { held in
            defer { held = nil }
            return held
        }
        if let thread { pthread_join(thread, nil) }
    }

    deinit {
        // Nobody joined: let the system reclaim the thread when it ends.
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

// A plain function: a closure made in isolated code would trap when C calls it on a thread of its own.
private func runThread(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    let start = Unmanaged<Start>.fromOpaque(context!).takeRetainedValue()
    clinux_name_thread(start.name)
    // C libraries write to sockets whose peer may be gone: that is an error of theirs, not the end of the process.
    var mask = sigset_t()
    sigemptyset(&mask)
    sigaddset(&mask, SIGPIPE)
    pthread_sigmask(SIG_BLOCK, &mask, nil)
    start.body()
    return nil
}
