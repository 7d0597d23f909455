/// Calls things at their time, on one thread of its own.
///
/// Made for time limits, which are set for every piece of work and seldom reached: setting one that is later than the
/// next one due, and taking it back, wake nobody.
public final class Alarms: Sendable {
    /// Names an alarm, for taking it back.
    public struct Alarm: Hashable, Sendable {
        fileprivate let moment: ContinuousClock.Instant
        fileprivate let number: UInt64
    }

    private let queue = AlarmQueue()

    /// Starts the thread, which ends when the last reference is gone; what is set by then is not called.
    public init(name: String) {
        let queue = queue
        // Not held: nobody waits for its end.
        _ = WorkThread(name: name, stackSize: 1 << 18) { queue.run() }
    }

    deinit {
        queue.close()
    }

    /// Has `call` called at `moment`, at once where that is past. Keep it short: others wait behind it.
    public func set(at moment: ContinuousClock.Instant, _ call: @escaping @Sendable () -> Void) -> Alarm {
        queue.add(moment, call)
    }

    /// Takes an alarm back. It may have been called already, or be on the way to it.
    public func cancel(_ alarm: Alarm) {
        queue.remove(alarm)
    }
}

/// Alarms by their time.
private final class AlarmQueue: Sendable {
    typealias Call = @Sendable () -> Void

    private struct State {
        var waiting: [(alarm: Alarms.Alarm, call: Call)] = []
        var count: UInt64 = 0
        /// The time at which the thread looks again by itself. It may be earlier than the first alarm, if that was
        /// taken back.
        var nextLook: ContinuousClock.Instant?
        var isClosed = false
    }

    private let state = ConditionLock(State())

    func add(_ moment: ContinuousClock.Instant, _ call: @escaping Call) -> Alarms.Alarm {
        let (alarm, isSooner) = state.withLock { state in
            state.count += 1
            let alarm = Alarms.Alarm(moment: moment, number: state.count)
            // From the end: limits of one length come in the order of their ends.
            let place = state.waiting.lastIndex { $0.alarm.moment <= moment }.map { $0 + 1 } ?? 0
            state.waiting.insert((alarm, call), at: place)
            return (alarm, state.nextLook.map { moment < $0 } ?? true)
        }
        if isSooner { state.signal() }
        return alarm
    }

    func remove(_ alarm: Alarms.Alarm) {
        state.withLock { state in
            if let place = state.waiting.firstIndex(where: { $0.alarm == alarm }) { state.waiting.remove(at: place) }
        }
    }

    func close() {
        state.withLock { $0.isClosed = true }
        state.signal()
    }

    func run() {
        while let call = next() { call() }
    }

    /// Waits until an alarm is due; nil when the queue is closed.
    private func next() -> Call? {
        state.wait(
            for: { state -> Call?? in
                if state.isClosed { return .some(nil) }
                if let first = state.waiting.first, first.alarm.moment <= .now {
                    return state.waiting.removeFirst().call
                }
                // An alarm that is added later and due sooner wakes the thread.
                state.nextLook = state.waiting.first?.alarm.moment
                return nil
            }, recheckingAt: { $0.nextLook })
    }
}
