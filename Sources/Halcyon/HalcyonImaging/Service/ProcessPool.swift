import Concurrency
import Subprocess

/// A child process of a ``ProcessPool``. Only one thread at a time may use it.
protocol PooledProcess: AnyObject, Sendable {
    /// The process id.
    var pid: Int32 { get }
    var isRunning: Bool { get }
    /// The number of completed requests.
    var answered: Int { get }

    /// Kills the process. May be called from any thread.
    @Sendable func kill()

    /// Waits for the process to exit. Blocks the calling thread.
    func exit() -> ChildProcess.Exit
}

/// Child processes that are started on demand and reused. A process that has exited, uses too much memory or has
/// completed its number of requests is replaced. All of them exit with this process, even if it crashes.
final class ProcessPool<Process: PooledProcess>: Sendable {
    private struct State {
        /// The idle processes, each with its memory reservation. The most recently used one is used next, so that
        /// unused ones are paged out.
        var idle: [(process: Process, memory: MemoryBudget.Reservation)] = []
        /// All running processes.
        var all: [Process] = []
        var isClosed = false
    }

    private let requests: Int
    private let restingMemory: Int
    private let state = Lock(State())

    /// Creates an empty pool.
    /// - Parameters:
    ///   - requests: The number of requests after which a process is replaced.
    ///   - restingMemory: The maximum private memory of an idle process, in bytes.
    init(requests: Int, restingMemory: Int = .max) {
        self.requests = requests
        self.restingMemory = restingMemory
    }

    /// The ids of the running processes.
    var processes: [Int32] { state.withLock { $0.all.filter(\.isRunning).map(\.pid) } }

    /// Kills all processes, and those that are started later. Blocks the calling thread.
    func shutdown() {
        let all = state.withLock { state in
            state.isClosed = true
            state.idle = []
            return state.all
        }
        for process in all { end(process) }
    }

    /// Kills the idle processes, because their memory is needed.
    func endIdle() {
        let idle = state.withLock { state in
            defer { state.idle = [] }
            return state.idle
        }
        for (process, _) in idle { end(process) }
    }

    /// Takes an idle process out of the pool.
    /// - Returns: The process, or nil if all are busy.
    func takeIdle() -> Process? {
        while let (process, _) = state.withLock({ $0.idle.popLast() }) {
            if process.isRunning { return process }
            end(process)
        }
        return nil
    }

    /// Adds a process that was started, and is busy.
    /// - Returns: False if the pool was shut down. The process has then been killed.
    func add(_ process: Process) -> Bool {
        let isClosed = state.withLock { state in
            state.all.append(process)
            return state.isClosed
        }
        if isClosed { end(process) }
        return !isClosed
    }

    /// Returns a busy process to the pool, or kills it if it has to be replaced or its memory is needed.
    /// - Parameter privateBytes: The private memory of the process, in bytes.
    func putBack(_ process: Process, _ privateBytes: Int, in memory: MemoryBudget) {
        guard privateBytes <= restingMemory, process.answered < requests,
            let share = memory.reserveIdle(privateBytes)
        else {
            end(process)
            return
        }
        let isClosed = state.withLock { state in
            if !state.isClosed { state.idle.append((process, share)) }
            return state.isClosed
        }
        if isClosed { end(process) }
    }

    /// Kills a process, which has nothing to clean up, and waits for its exit.
    @discardableResult
    func end(_ process: Process) -> ChildProcess.Exit {
        process.kill()
        let exit = process.exit()
        state.withLock { state in state.all.removeAll { $0 === process } }
        return exit
    }
}
