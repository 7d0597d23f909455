import Threads

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
