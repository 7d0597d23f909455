import HalcyonModel
import Threads

/// One rendering from its order to its end. It waits for a thread, then runs, and can be stopped at any moment of both.
final class Turn: Sendable {
    typealias Waiter = CheckedContinuation<Rendering, any Error>

    /// What is to be rendered.
    struct Order: Sendable {
        var source: [UInt8]
        var variants: [Variant]
        var assets: [Source: [UInt8]]
        var isolation: RenderService.Isolation

        /// Bytes of the files.
        var bytes: Int { assets.values.reduce(source.count) { $0 + $1.count } }
    }

    /// Why it does not come to its own end.
    enum Stop: Error {
        /// The task was cancelled.
        case cancelled
        /// It takes longer than one rendering may.
        case overtime
    }

    private enum Phase {
        case ordered(Order)
        case waiting(Order, Waiter)
        case running(stop: (@Sendable () -> Void)?)
    }

    private struct State {
        var phase: Phase
        var stop: Stop?
    }

    private let state: Lock<State>

    init(_ order: Order) {
        state = Lock(State(phase: .ordered(order)))
    }

    /// Why it was stopped, if it was.
    var stopped: Stop? { state.withLock { $0.stop } }

    /// Has `waiter` wait for the end.
    /// - Returns: false when it has been stopped already, which the waiter then knows.
    func wait(_ waiter: Waiter) -> Bool {
        let stop: Stop? = state.withLock { state in
            if let stop = state.stop { return stop }
            guard case .ordered(let order) = state.phase else { preconditionFailure("a turn is waited for once") }
            state.phase = .waiting(order, waiter)
            return nil
        }
        if let stop { waiter.resume(throwing: stop) }
        return stop == nil
    }

    /// A thread is there: the order, and who is to be told of its end; nil when it was stopped before.
    func begin() -> (order: Order, waiter: Waiter)? {
        state.withLock { state in
            guard case .waiting(let order, let waiter) = state.phase else { return nil }
            state.phase = .running(stop: nil)
            return (order, waiter)
        }
    }

    /// Runs `body`, which `stop` ends from any thread. `stop` is called at most once, and perhaps just after the end of
    /// `body`; then, too, this throws.
    /// - Throws: ``Stop`` when it was stopped before, in the middle, or just then; else what `body` throws.
    func run<Result>(stoppedBy stop: @escaping @Sendable () -> Void, _ body: () throws -> Result) throws -> Result {
        try proceed(stop)
        let result = Swift.Result { try body() }
        try proceed(nil)
        return try result.get()
    }

    private func proceed(_ stop: (@Sendable () -> Void)?) throws(Stop) {
        let stopped: Stop? = state.withLock { state in
            state.phase = .running(stop: stop)
            return state.stop
        }
        if let stopped { throw stopped }
    }

    /// Stops it. What waits for a thread ends at once; what runs ends when it has come to a halt.
    func stop(_ reason: Stop) {
        let (waiter, stop): (Waiter?, (@Sendable () -> Void)?) = state.withLock { state in
            guard state.stop == nil else { return (nil, nil) }
            state.stop = reason
            switch state.phase {
            case .ordered: return (nil, nil)
            case .waiting(_, let waiter):
                // The bytes of the source go now: the thread may be long in coming.
                state.phase = .running(stop: nil)
                return (waiter, nil)
            case .running(let stop): return (nil, stop)
            }
        }
        waiter?.resume(throwing: reason)
        stop?()
    }
}

/// The time of one rendering, which does not pass while it waits for memory. Confined to the thread that has the turn.
final class TurnClock {
    private let turn: Turn
    private let time: Duration
    private let alarms: Alarms
    private let underWay: TurnsUnderWay
    private var alarm: Alarms.Alarm?

    init(_ turn: Turn, _ time: Duration, _ alarms: Alarms, _ underWay: TurnsUnderWay) {
        self.turn = turn
        self.time = time
        self.alarms = alarms
        self.underWay = underWay
    }

    /// It has the whole time from now on.
    func start() {
        let limit = ContinuousClock.now + time
        underWay.enter(turn, until: limit)
        alarm = alarms.set(at: limit) { [turn] in turn.stop(.overtime) }
    }

    /// It has as long as it takes.
    func pause() {
        endAlarm()
        underWay.enter(turn, until: nil)
    }

    /// It has come to its end.
    func end() {
        endAlarm()
        underWay.leave(turn)
    }

    private func endAlarm() {
        if let alarm { alarms.cancel(alarm) }
        alarm = nil
    }
}

/// The renderings that have a thread, and by when each has to give it back; nil while it waits for memory.
final class TurnsUnderWay: Sendable {
    private let turns = Lock<[ObjectIdentifier: (turn: Turn, limit: ContinuousClock.Instant?)]>([:])

    func enter(_ turn: Turn, until limit: ContinuousClock.Instant?) {
        turns.withLock { $0[ObjectIdentifier(turn)] = (turn, limit) }
    }

    func leave(_ turn: Turn) {
        turns.withLock { $0[ObjectIdentifier(turn)] = nil }
    }

    /// The first limit of them all.
    var firstLimit: ContinuousClock.Instant? {
        turns.withLock { $0.values.lazy.compactMap(\.limit).min() }
    }

    func stopAll() {
        for (turn, _) in turns.withLock({ Array($0.values) }) { turn.stop(.cancelled) }
    }
}
