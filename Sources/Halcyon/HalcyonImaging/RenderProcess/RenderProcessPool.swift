import CLinux
import Concurrency
import Glibc
import HalcyonModel
import Subprocess

/// A pool of child processes for renderings that should not run in this process: those with codecs that cannot be
/// interrupted, and those that may crash the process.
///
/// They are reused and replaced like those of any ``ProcessPool``.
public final class RenderProcessPool: Sendable {
    /// An event for the log.
    public enum PoolEvent: Sendable, CustomStringConvertible {
        /// A render process wrote this line to standard error.
        case wrote(String)
        /// A render process exited unexpectedly during a rendering.
        case died(ChildProcess.Exit)

        /// The text for the log.
        public var description: String {
            switch self {
            case .wrote(let line): line
            case .died(let exit): "crashed while rendering: \(exit)"
            }
        }
    }

    /// The initial memory of a rendering without an estimate, in bytes. Most renderings need no more.
    private static let memoryUnseen = 64 << 20

    private let options: RenderProcessOptions
    private let tell: @Sendable (PoolEvent) -> Void
    private let pool: ProcessPool<RenderProcess>

    /// Creates an empty pool.
    /// - Parameter tell: A callback for events, called on any thread.
    public init(_ options: RenderProcessOptions, tell: @escaping @Sendable (PoolEvent) -> Void) {
        self.options = options
        self.tell = tell
        pool = ProcessPool(requests: options.renderings, restingMemory: options.restingMemory)
    }

    /// The ids of the running processes.
    public var processes: [Int32] { pool.processes }

    /// Kills all render processes. Call it when no rendering is in flight. Blocks the calling thread.
    public func shutdown() { pool.shutdown() }

    /// Kills the idle render processes, because their memory is needed.
    func endIdle() { pool.endIdle() }

    /// Renders in a child process, and once more in a new one if the first one crashes. A trial is not repeated.
    ///
    /// A process is used only after the memory for the rendering has been reserved. Without an estimate a small amount
    /// is reserved first. If the process replies that it needs more, that amount is waited for without occupying a
    /// process. If it crashed or exceeded its memory, the next one gets as much as decoding any image may need.
    ///
    /// - Parameter estimate: The estimated memory in bytes, or nil without an estimate.
    /// - Throws: ``RenderTask/CancellationReason``; ``RenderProcessCrash`` for a trial; ``JobError``: an error of the
    ///   rendering, `corruptImage` if the image crashed two processes, `timeout` if both exceeded their CPU time,
    ///   `internal` if two were killed from outside, a reply was invalid, or no process could be started.
    func render(
        _ order: RenderTask.Input, taking estimate: Int?, within limits: ImageLimits, _ reservation: MemoryReservation
    ) throws -> RenderResult {
        let isOnTrial = if case .trial = order.isolation { true } else { false }
        var memory = estimate ?? (isOnTrial ? limits.memory : min(Self.memoryUnseen, limits.memory))
        var hasKilled = false
        while true {
            do {
                switch try attempt(order, limits, memory, reservation, inFresh: hasKilled) {
                case .rendered(let rendering): return rendering
                case .failed(let failure): throw failure
                case .needs(let more):
                    guard more > memory, more <= limits.renderedBytes else { throw nonsense("it needs \(more) bytes") }
                    memory = more
                }
            } catch is OutgrownMemory {
                guard memory < limits.memory else { throw JobError(beyondMemory: memory) }
                memory = limits.memory
            } catch let death as RenderProcessCrash {
                if isOnTrial { throw death }
                if hasKilled { throw death.failure }
                hasKilled = true
                memory = max(memory, limits.memory)
            }
        }
    }

    /// Reserves the memory and renders in a child process.
    /// - Parameter memory: The memory of the rendering itself, in bytes.
    private func attempt(
        _ order: RenderTask.Input, _ limits: ImageLimits, _ memory: Int, _ reservation: MemoryReservation,
        inFresh isFresh: Bool
    ) throws -> RenderReply.RenderResponse {
        var share: MemoryBudget.Reservation? = try reservation.task.run(stoppedBy: reservation.memory.wake) {
            try reservation.enter(options.baseMemory + order.bytes + memory)
        }
        defer { withExtendedLifetime(share) {} }
        let child = try (isFresh ? nil : takeIdle(for: memory + order.bytes)) ?? start()
        let answer: RenderReply.RenderResponse
        let privateBytes: Int
        do {
            (answer, privateBytes) = try reservation.task.run(stoppedBy: child.kill) {
                try child.answer(order, within: limits, memory: memory)
            }
        } catch MessageError.ended {
            let death = RenderProcessCrash(exit: pool.end(child))
            tell(.died(death.exit))
            throw death
        } catch {
            pool.end(child)
            throw error is RenderTask.CancellationReason || error is OutgrownMemory
                ? error : nonsense("unreadable reply", error)
        }
        share = nil
        pool.putBack(child, privateBytes, in: reservation.memory)
        return answer
    }

    /// Takes an idle process out of the pool. A process that has reserved too much in earlier renderings is killed.
    private func takeIdle(for bytes: Int) -> RenderProcess? {
        guard let child = pool.takeIdle() else { return nil }
        if GrantedMemory.isSufficient(options.memory - child.reservedBytes, for: bytes, within: options.memory) {
            return child
        }
        pool.end(child)
        return nil
    }

    private func nonsense(_ what: String, _ cause: (any Error)? = nil) -> JobError {
        JobError(.internal, "invalid reply of a render process: \(what)", isRetryable: false, cause: cause)
    }

    private func start() throws(JobError) -> RenderProcess {
        let child: RenderProcess
        do {
            child = try RenderProcess(options) { [tell] in tell(.wrote($0)) }
        } catch {
            throw JobError(.internal, "could not start a render process: \(error)", cause: error)
        }
        guard pool.add(child) else { throw JobError(.internal, "rendering is shutting down") }
        return child
    }
}

/// The memory limit of this process, a render process, for its current rendering (getrlimit(2), RLIMIT_DATA).
///
/// The memory of a rendering is an estimate, and the parent process checks the actual use. If the parent cannot check
/// it in time, the render process fails or crashes, and not the worker or the machine. Libraries reserve up to twice
/// the memory that they use. tcmalloc returns the memory of earlier renderings, but never their address space, which
/// counts towards the limit.
struct GrantedMemory {
    /// The additional memory of a process, in bytes, for caches of libraries, fragmentation, and thread stacks, which
    /// are reserved but hardly used.
    private static let spare = 64 << 20 + ResourceLimits.processors * (16 << 20)

    private let base = dataBytes()

    /// Sets the limit for a rendering that needs this number of bytes, beyond what the process has reserved.
    /// - Returns: The private memory in bytes beyond which a failed allocation may be the cause of a failure.
    func limit(to bytes: Int) -> Int {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_DATA.rawValue), &limit) == 0 else { return .max }
        let granted = Self.spare + 2 * bytes
        limit.rlim_cur = min(limit.rlim_max, rlim_t(dataBytes() + granted))
        setrlimit(__rlimit_resource_t(RLIMIT_DATA.rawValue), &limit)
        return min(Int(clamping: limit.rlim_max), base + granted) / 2
    }

    /// Returns true if a process that has rendered before can be used for a rendering of this number of bytes.
    /// - Parameters:
    ///   - free: the bytes that the process can still reserve.
    ///   - most: the maximum that a process can reserve. Not even a new process has all of it, and on a machine with
    ///     many processors, the spare memory alone may exceed it.
    static func isSufficient(_ free: Int, for bytes: Int, within most: Int) -> Bool {
        free >= min(min(spare, most / 4) + 2 * bytes, most - most / 8)
    }
}
