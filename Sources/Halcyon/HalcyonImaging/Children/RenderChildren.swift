import CLinux
import Glibc
import HalcyonModel
import Processes
import Threads

/// Child processes that render, for what this process had better not do: codecs that cannot be stopped, and pictures
/// that may end the process.
///
/// They start when they are needed and are kept; one that was killed, died, grew too large or has done enough is
/// replaced. They die with this process, however it ends.
public final class RenderChildren: Sendable {
    /// What is worth a line in the log.
    public enum Note: Sendable, CustomStringConvertible {
        /// A child wrote this to its standard error.
        case wrote(String)
        /// A child ended in the middle of a rendering, and nobody had asked it to.
        case died(ChildProcess.Exit)

        /// The line.
        public var description: String {
            switch self {
            case .wrote(let line): line
            case .died(let exit): "died while rendering: \(exit)"
            }
        }
    }

    private struct State {
        /// Those that have nothing to do, each with the memory that it holds. The one used last is used next: what is not needed is
        /// paged out and in time forgotten.
        var idle: [(child: RenderChild, memory: DecodingMemory.Share)] = []
        /// All that run.
        var all: [RenderChild] = []
        var isClosed = false
    }

    /// Bytes of memory for a rendering at whose picture nobody has looked: most need no more.
    private static let memoryUnseen = 64 << 20

    private let options: RenderChildOptions
    private let tell: @Sendable (Note) -> Void
    private let state = Lock(State())

    /// Starts nothing yet.
    /// - Parameter tell: hears what is worth a line in the log, on any thread.
    public init(_ options: RenderChildOptions, tell: @escaping @Sendable (Note) -> Void) {
        self.options = options
        self.tell = tell
    }

    /// Process ids of the children that run now.
    public var processes: [Int32] { state.withLock { $0.all.filter(\.isRunning).map(\.pid) } }

    /// Ends all children. To be called when nothing is rendered any more; it blocks.
    public func shutdown() {
        let all = state.withLock { state in
            state.isClosed = true
            state.idle = []
            return state.all
        }
        for child in all { end(child) }
    }

    /// Renders in a child, and once more in a fresh one if the first dies of it; what is on trial once.
    ///
    /// The child starts when there is memory for the rendering. Without an estimate a little is taken for a start. A child that says that it
    /// needs more waits for that without a child; one that died or held too much has a successor with as much as decoding any image may take.
    ///
    /// - Parameter estimate: bytes of memory that it will take; nil where nobody has looked.
    /// - Throws: ``Turn/Stop``; ``ChildDeath`` of what is on trial; ``Failure``: the child's own, `corruptImage` when the picture
    ///   made two children crash, `timeout` when both had used up their processor time, `internal` when something else ended two of
    ///   them, when one answers nonsense, or none can be started.
    func render(
        _ order: Turn.Order, taking estimate: Int?, within limits: ImageLimits, _ door: MemoryDoor
    ) throws -> Rendering {
        let isOnTrial = if case .trial = order.isolation { true } else { false }
        var memory = estimate ?? (isOnTrial ? limits.memory : min(Self.memoryUnseen, limits.memory))
        var hasKilled = false
        while true {
            do {
                switch try attempt(order, limits, memory, door, inFresh: hasKilled) {
                case .rendered(let rendering): return rendering
                case .failed(let failure): throw failure
                case .needs(let more):
                    guard more > memory, more <= limits.renderedBytes else { throw nonsense("it needs \(more) bytes") }
                    memory = more
                }
            } catch is OutgrownMemory {
                guard memory < limits.memory else { throw Failure(beyondMemory: memory) }
                memory = limits.memory
            } catch let death as ChildDeath {
                if isOnTrial { throw death }
                if hasKilled { throw death.failure }
                hasKilled = true
                memory = max(memory, limits.memory)
            }
        }
    }

    /// Takes the memory, and has a child render.
    /// - Parameter memory: bytes for the rendering itself.
    private func attempt(
        _ order: Turn.Order, _ limits: ImageLimits, _ memory: Int, _ door: MemoryDoor, inFresh isFresh: Bool
    ) throws -> RenderReply.Answer {
        var share: DecodingMemory.Share? = try door.turn.run(stoppedBy: door.memory.wake) {
            try door.enter(options.baseMemory + order.bytes + memory)
        }
        defer { withExtendedLifetime(share) {} }
        let child = try (isFresh ? nil : idle()) ?? start()
        let answer: RenderReply.Answer
        let privateBytes: Int
        do {
            (answer, privateBytes) = try door.turn.run(stoppedBy: child.kill) {
                try child.answer(order, within: limits, memory: memory)
            }
        } catch MessageError.ended {
            let death = ChildDeath(exit: end(child))
            tell(.died(death.exit))
            throw death
        } catch {
            end(child)
            throw error is Turn.Stop || error is OutgrownMemory
                ? error : nonsense("there is no reading its reply", error)
        }
        share = nil
        keep(child, privateBytes, in: door.memory)
        return answer
    }

    private func nonsense(_ what: String, _ cause: (any Error)? = nil) -> Failure {
        Failure(.internal, "a child does not answer as it should: \(what)", isRetryable: false, cause: cause)
    }

    // MARK: Children

    private func idle() -> RenderChild? {
        while let (child, _) = state.withLock({ $0.idle.popLast() }) {
            if child.isRunning { return child }
            end(child)
        }
        return nil
    }

    private func start() throws(Failure) -> RenderChild {
        let child: RenderChild
        do {
            child = try RenderChild(options) { [tell] in tell(.wrote($0)) }
        } catch {
            throw Failure(.internal, "no child to render in: \(error)", cause: error)
        }
        let isClosed = state.withLock { state in
            state.all.append(child)
            return state.isClosed
        }
        guard !isClosed else {
            end(child)
            throw Failure(.internal, "rendering has been shut down")
        }
        return child
    }

    private func keep(_ child: RenderChild, _ privateBytes: Int, in memory: DecodingMemory) {
        guard privateBytes <= options.restingMemory, child.answered < options.renderings,
            let share = memory.rest(privateBytes)
        else {
            end(child)
            return
        }
        let isClosed = state.withLock { state in
            if !state.isClosed { state.idle.append((child, share)) }
            return state.isClosed
        }
        if isClosed { end(child) }
    }

    /// Ends the children that have nothing to do, whose memory somebody needs.
    func endIdle() {
        let idle = state.withLock { state in
            defer { state.idle = [] }
            return state.idle
        }
        for (child, _) in idle { end(child) }
    }

    @discardableResult
    private func end(_ child: RenderChild) -> ChildProcess.Exit {
        // It has nothing to put in order, so that there is no need to ask.
        child.kill()
        let exit = child.exit()
        state.withLock { state in state.all.removeAll { $0 === child } }
        return exit
    }
}

/// The memory that this process, a child, may reserve for the rendering that it is at (getrlimit(2), RLIMIT_DATA).
///
/// What a rendering takes is an estimate, and its parent looks at what it really holds. Where the parent cannot, or not in time, the
/// child fails, or dies, and not the worker or the machine. Libraries reserve up to twice what they touch.
struct GrantedMemory {
    /// Bytes that a process may have beside what it was given: for what libraries keep, for holes, and for stacks of threads,
    /// which are reserved and hardly used.
    private static let spare = 64 << 20 + MachineShare.processors * (16 << 20)

    private let base = dataBytes()

    /// Allows so many bytes.
    func limit(to bytes: Int) {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_DATA.rawValue), &limit) == 0 else { return }
        limit.rlim_cur = min(limit.rlim_max, rlim_t(base + Self.spare + 2 * bytes))
        setrlimit(__rlimit_resource_t(RLIMIT_DATA.rawValue), &limit)
    }
}
