/// Calls closures at given times, on a dedicated thread.
///
/// Designed for timeouts, which are set for every piece of work and rarely reached. Setting a timer later than the next
/// one due, and cancelling it, wakes no thread.
public final class TimerThread: Sendable {
    /// A handle that cancels a timer.
    public struct TimerToken: Hashable, Sendable {
        fileprivate let moment: ContinuousClock.Instant
        fileprivate let number: UInt64
    }

    private let queue = TimerHeap()

    /// Starts the thread, which ends when the last reference is released. Timers pending at that point are not called.
    public init(name: String) {
        let queue = queue
        // The thread is not retained because nothing waits for its end.
        _ = NamedThread(name: name) { queue.run() }
    }

    deinit {
        queue.close()
    }

    /// Calls `call` at `moment`, or immediately if that is in the past. Keep it short: other timers wait for it.
    public func set(at moment: ContinuousClock.Instant, _ call: @escaping @Sendable () -> Void) -> TimerToken {
        queue.add(moment, call)
    }

    /// Cancels a timer. It may have been called already, or be about to be called.
    public func cancel(_ timer: TimerToken) {
        queue.remove(timer)
    }
}

/// The pending timers, ordered by time.
private final class TimerHeap: Sendable {
    typealias Action = @Sendable () -> Void

    private struct State {
        var waiting: [(timer: TimerThread.TimerToken, call: Action)] = []
        var count: UInt64 = 0
        /// The time of the thread's next wakeup. It may be earlier than the first timer if that one was cancelled.
        var nextLook: ContinuousClock.Instant?
        var isClosed = false
    }

    private let state = ConditionLock(State())

    func add(_ moment: ContinuousClock.Instant, _ call: @escaping Action) -> TimerThread.TimerToken {
        let (timer, isSooner) = state.withLock { state in
            state.count += 1
            let timer = TimerThread.TimerToken(moment: moment, number: state.count)
            // Search from the end: timeouts of equal length arrive in the order of their deadlines.
            let place = state.waiting.lastIndex { $0.timer.moment <= moment }.map { $0 + 1 } ?? 0
            state.waiting.insert((timer, call), at: place)
            return (timer, state.nextLook.map { moment < $0 } ?? true)
        }
        if isSooner { state.signal() }
        return timer
    }

    func remove(_ timer: TimerThread.TimerToken) {
        state.withLock { state in
            if let place = state.waiting.firstIndex(where: { $0.timer == timer }) { state.waiting.remove(at: place) }
        }
    }

    func close() {
        state.withLock { $0.isClosed = true }
        state.signal()
    }

    func run() {
        while let call = next() { call() }
    }

    /// Waits until a timer is due; nil when the queue is closed.
    private func next() -> Action? {
        state.wait(
            for: { state -> Action?? in
                if state.isClosed { return .some(nil) }
                if let first = state.waiting.first, first.timer.moment <= .now {
                    return state.waiting.removeFirst().call
                }
                // A timer that is added later and due sooner wakes the thread.
                state.nextLook = state.waiting.first?.timer.moment
                return nil
            }, recheckingAt: { $0.nextLook })
    }
}
