import Testing

@testable import HalcyonWorker

/// The detection of stuck workers, as a pure value without a worker.
@Suite struct WatchdogStateTests {
    private let start = ContinuousClock.now
    private let options = {
        var options = HealthOptions()
        (options.stuckAfter, options.exitAfter) = (.seconds(10), .seconds(5))
        return options
    }()

    private func moment(_ seconds: Double) -> HealthSnapshot.Moment { start + .seconds(seconds) }

    /// Returns the snapshot of a worker whose last signs of progress are from this moment.
    private func healthySnapshot(at seconds: Double) -> HealthSnapshot {
        var snapshot = HealthSnapshot(since: moment(seconds))
        snapshot.jobs = 3
        return snapshot
    }

    @Test func overdueSignsOfProgressAreObstacles() {
        var snapshot = healthySnapshot(at: 0)
        #expect(snapshot.obstacles(at: moment(10), stuckAfter: .seconds(10)).isEmpty)
        #expect(
            snapshot.obstacles(at: moment(12), stuckAfter: .seconds(10)) == [
                .consumer(.seconds(12)), .tasks(.seconds(12)),
            ])
        // A consumer polls once a second.
        #expect(snapshot.obstacles(at: moment(11), stuckAfter: .seconds(10)) == [.tasks(.seconds(11))])
        (snapshot.lastPoll, snapshot.lastTurn) = (moment(100), moment(100))
        // A rendering is late once its time limit has passed.
        snapshot.renderLimit = moment(95)
        #expect(snapshot.obstacles(at: moment(101), stuckAfter: .seconds(10)).isEmpty)
        #expect(snapshot.obstacles(at: moment(106), stuckAfter: .seconds(10)) == [.rendering(.seconds(11))])
        #expect("\(snapshot.obstacles(at: moment(106), stuckAfter: .seconds(10))[0])".contains("11.0 seconds after"))
    }

    @Test func waitingJobsAreNotAnObstacle() {
        var snapshot = healthySnapshot(at: 0)
        snapshot.jobs = 100_000
        (snapshot.lastPoll, snapshot.lastTurn) = (moment(86_400), moment(86_400))
        #expect(snapshot.obstacles(at: moment(86_400), stuckAfter: .seconds(10)).isEmpty)
    }

    @Test func reportsStuckOnceAndHopelessAfterTheLimit() {
        var (watchdog, snapshot) = (WatchdogState(), healthySnapshot(at: 0))
        #expect(watchdog.look(at: snapshot, moment(0), options) == nil)
        for second in 1...20 {
            (snapshot.lastPoll, snapshot.lastTurn) = (moment(Double(second)), moment(Double(second)))
            snapshot.renderLimit = moment(2)
            let change = watchdog.look(at: snapshot, moment(Double(second)), options)
            switch second {
            case 13: #expect(change == .stuck([.rendering(.seconds(11))]))
            case 18...: #expect(change == .hopeless([.rendering(.seconds(second - 2))]))
            default: #expect(change == nil)
            }
            #expect(watchdog.isStuck == (second >= 13))
        }
        snapshot.renderLimit = nil
        (snapshot.lastPoll, snapshot.lastTurn) = (moment(21), moment(21))
        #expect(watchdog.look(at: snapshot, moment(21), options) == .moves(.seconds(8)))
        #expect(!watchdog.isStuck)
    }

    @Test func staysStuckWithoutAnExitLimit() {
        var (watchdog, options) = (WatchdogState(), options)
        options.exitAfter = nil
        let snapshot = healthySnapshot(at: 0)
        for second in 0..<1000 {
            let change = watchdog.look(at: snapshot, moment(Double(second)), options)
            #expect((change != nil) == (second == 11))
        }
    }

    @Test func pausedProcessIsCheckedAgainFirst() {
        var (watchdog, snapshot) = (WatchdogState(), healthySnapshot(at: 0))
        #expect(watchdog.look(at: snapshot, moment(1), options) == nil)
        // Paused for a minute, and resumed a moment ago.
        #expect(watchdog.look(at: snapshot, moment(61), options) == nil)
        (snapshot.lastPoll, snapshot.lastTurn) = (moment(61.5), moment(61.5))
        #expect(watchdog.look(at: snapshot, moment(62), options) == nil)
        #expect(!watchdog.isStuck)
    }
}
