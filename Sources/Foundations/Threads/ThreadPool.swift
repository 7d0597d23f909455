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
