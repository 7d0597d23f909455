import Glibc
import HalcyonImaging
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
        /// The one used last is used next: what is not needed is paged out and in time forgotten.
        var idle: [RenderChild] = []
        /// All that run.
        var all: [RenderChild] = []
        var isClosed = false
    }

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
    /// - Throws: ``Turn/Stop``; ``ChildDeath`` of what is on trial; ``Failure``: the child's own, `corruptImage` when the picture
    ///   made two children crash, `timeout` when both had used up their processor time, `internal` when something else ended two of
    ///   them, when one answers nonsense, or none can be started.
    func render(_ order: Turn.Order, within limits: ImageLimits, _ door: MemoryDoor) throws -> Rendering {
        if case .trial = order.isolation { return try attempt(order, limits, door, in: idle() ?? start()) }
        do {
            return try attempt(order, limits, door, in: idle() ?? start())
        } catch is ChildDeath {
            do {
                return try attempt(order, limits, door, in: start())
            } catch let death as ChildDeath {
                throw death.failure
            }
        }
    }

    private func attempt(
        _ order: Turn.Order, _ limits: ImageLimits, _ door: MemoryDoor, in child: RenderChild
    ) throws -> Rendering {
        let result: Result<Rendering, Failure>
        let residentBytes: Int
        do {
            let stop: @Sendable () -> Void = { [memory = door.memory] in
                child.kill()
                memory.wake()
            }
            (result, residentBytes) = try door.turn.run(stoppedBy: stop) {
                try child.answer(order, within: limits, door)
            }
        } catch MessageError.ended {
            let death = ChildDeath(exit: end(child))
            tell(.died(death.exit))
            throw death
        } catch {
            end(child)
            throw error is Turn.Stop ? error : nonsense("\(error)")
        }
        keep(child, residentBytes)
        return try result.get()
    }

    private func nonsense(_ what: String) -> Failure {
        Failure(.internal, "a child does not answer as it should: \(what)", isRetryable: false)
    }

    // MARK: Children

    private func idle() -> RenderChild? {
        while let child = state.withLock({ $0.idle.popLast() }) {
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
            throw Failure(.internal, "no child to render in: \(error)")
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

    private func keep(_ child: RenderChild, _ residentBytes: Int) {
        guard residentBytes <= options.restingMemory, child.answered < options.renderings else {
            end(child)
            return
        }
        let isClosed = state.withLock { state in
            if !state.isClosed { state.idle.append(child) }
            return state.isClosed
        }
        if isClosed { end(child) }
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
