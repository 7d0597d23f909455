import Concurrency
import HalcyonModel

/// The state of one rendering from its creation to its end. It waits for a thread, then runs, and can be stopped at any
/// time.
final class RenderTask: Sendable {
    typealias Waiter = CheckedContinuation<RenderResult, any Error>

    /// The input of a rendering.
    struct Input: Sendable {
        var source: [UInt8]
        var variants: [Variant]
        var assets: [Source: [UInt8]]
        var isolation: RenderService.Isolation
        /// The original, if the source is an archive copy of it.
        var original: ArchivedOriginal?
        /// The archive copy to make instead of variants.
        var archive: ArchiveOptions?
        /// The faces in the upright source by page; none for a page where they have not been looked for.
        var faces: [Int: [DetectedBox]] = [:]

        /// The size of the files, in bytes.
        var bytes: Int { assets.values.reduce(source.count) { $0 + $1.count } }
    }

    /// The reason for which a rendering was stopped.
    enum CancellationReason: Error {
        /// The task was cancelled.
        case cancelled
        /// The rendering exceeded its deadline.
        case overtime
    }

    private enum Phase {
        case ordered(Input)
        case waiting(Input, Waiter)
        case running(stop: (@Sendable () -> Void)?)
    }

    private struct State {
        var phase: Phase
        var stop: CancellationReason?
    }

    private let state: Lock<State>

    init(_ order: Input) {
        state = Lock(State(phase: .ordered(order)))
    }

    /// The reason for which it was stopped, if it was.
    var stopped: CancellationReason? { state.withLock { $0.stop } }

    /// Registers the continuation that receives the result.
    /// - Returns: False if the task has already been stopped, in which case `waiter` has been resumed.
    func wait(_ waiter: Waiter) -> Bool {
        let stop: CancellationReason? = state.withLock { state in
            if let stop = state.stop { return stop }
            guard case .ordered(let order) = state.phase else { preconditionFailure("a task has one waiter") }
            state.phase = .waiting(order, waiter)
            return nil
        }
        if let stop { waiter.resume(throwing: stop) }
        return stop == nil
    }

    /// Starts the task on a thread. Returns its input and its continuation, or nil if it was stopped before.
    func begin() -> (order: Input, waiter: Waiter)? {
        state.withLock { state in
            guard case .waiting(let order, let waiter) = state.phase else { return nil }
            state.phase = .running(stop: nil)
            return (order, waiter)
        }
    }

    /// Runs `body`, which `stop` interrupts from any thread. `stop` is called at most once, possibly just after `body`
    /// has returned. In that case this method throws, too.
    /// - Throws: ``CancellationReason`` if the task was stopped before or during `body`, or an error of `body`.
    func run<Result>(stoppedBy stop: @escaping @Sendable () -> Void, _ body: () throws -> Result) throws -> Result {
        try proceed(stop)
        let result = Swift.Result { try body() }
        try proceed(nil)
        return try result.get()
    }

    private func proceed(_ stop: (@Sendable () -> Void)?) throws(CancellationReason) {
        let stopped: CancellationReason? = state.withLock { state in
            state.phase = .running(stop: stop)
            return state.stop
        }
        if let stopped { throw stopped }
    }

    /// Stops the task. A waiting task ends at once. A running task ends when its operation has been interrupted.
    func stop(_ reason: CancellationReason) {
        let (waiter, stop): (Waiter?, (@Sendable () -> Void)?) = state.withLock { state in
            guard state.stop == nil else { return (nil, nil) }
            state.stop = reason
            switch state.phase {
            case .ordered: return (nil, nil)
            case .waiting(_, let waiter):
                // The source is released now, because the thread may not be available for some time.
                state.phase = .running(stop: nil)
                return (waiter, nil)
            case .running(let stop): return (nil, stop)
            }
        }
        waiter?.resume(throwing: reason)
        stop?()
    }
}

/// The deadline of one rendering, which is suspended while it waits for memory. Confined to the thread that runs the
/// task.
final class RenderDeadline {
    private let task: RenderTask
    private let time: Duration
    private let timers: TimerThread
    private let inFlight: ActiveRenders
    private var timer: TimerThread.TimerToken?

    init(_ task: RenderTask, _ time: Duration, _ timers: TimerThread, _ inFlight: ActiveRenders) {
        self.task = task
        self.time = time
        self.timers = timers
        self.inFlight = inFlight
    }

    /// Starts the deadline with the full render time.
    func start() {
        let limit = ContinuousClock.now + time
        inFlight.enter(task, until: limit)
        timer = timers.set(at: limit) { [task] in task.stop(.overtime) }
    }

    /// Suspends the deadline.
    func pause() {
        endAlarm()
        inFlight.enter(task, until: nil)
    }

    /// Ends the deadline.
    func end() {
        endAlarm()
        inFlight.leave(task)
    }

    private func endAlarm() {
        if let timer { timers.cancel(timer) }
        timer = nil
    }
}

/// The renderings that occupy a thread, with their deadlines. A deadline is nil while the rendering waits for memory.
final class ActiveRenders: Sendable {
    private let tasks = Lock<[ObjectIdentifier: (task: RenderTask, limit: ContinuousClock.Instant?)]>([:])

    func enter(_ task: RenderTask, until limit: ContinuousClock.Instant?) {
        tasks.withLock { $0[ObjectIdentifier(task)] = (task, limit) }
    }

    func leave(_ task: RenderTask) {
        tasks.withLock { $0[ObjectIdentifier(task)] = nil }
    }

    /// The earliest deadline.
    var firstLimit: ContinuousClock.Instant? {
        tasks.withLock { $0.values.lazy.compactMap(\.limit).min() }
    }

    func cancelAll() {
        for (task, _) in tasks.withLock({ Array($0.values) }) { task.stop(.cancelled) }
    }
}
