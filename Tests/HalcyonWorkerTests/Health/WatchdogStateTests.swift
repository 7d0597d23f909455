import Testing

@testable import HalcyonWorker

/// When a worker counts as stuck: values alone, no worker.
@Suite struct WatchdogStateTests {
    private let start = ContinuousClock.now
    private let options = {
        var options = HealthOptions()
        (options.stuckAfter, options.exitAfter) = (.seconds(10), .seconds(5))
        return options
    }()

    private func moment(_ seconds: Double) -> HealthSnapshot.Moment { start + .seconds(seconds) }

    /// A worker all of whose signs came at this moment.
    private func wellBeing(at seconds: Double) -> HealthSnapshot {
        var progress = HealthSnapshot(since: moment(seconds))
        progress.jobs = 3
        return progress
    }

    @Test func whatIsLateHinders() {
        var progress = wellBeing(at: 0)
        #expect(progress.obstacles(at: moment(10), stuckAfter: .seconds(10)).isEmpty)
        #expect(
            progress.obstacles(at: moment(12), stuckAfter: .seconds(10)) == [
                .consumer(.seconds(12)), .tasks(.seconds(12)),
            ])
        // A consumer looks once a second.
        #expect(progress.obstacles(at: moment(11), stuckAfter: .seconds(10)) == [.tasks(.seconds(11))])
        (progress.lastPoll, progress.lastTurn) = (moment(100), moment(100))
        // A rendering is late from its own time limit on.
        progress.renderLimit = moment(95)
        #expect(progress.obstacles(at: moment(101), stuckAfter: .seconds(10)).isEmpty)
        #expect(progress.obstacles(at: moment(106), stuckAfter: .seconds(10)) == [.rendering(.seconds(11))])
        #expect("\(progress.obstacles(at: moment(106), stuckAfter: .seconds(10))[0])".contains("11.0 seconds after"))
    }

    @Test func jobsThatWaitAreNoStandstill() {
        var progress = wellBeing(at: 0)
        progress.jobs = 100_000
        (progress.lastPoll, progress.lastTurn) = (moment(86_400), moment(86_400))
        #expect(progress.obstacles(at: moment(86_400), stuckAfter: .seconds(10)).isEmpty)
    }

    @Test func itIsSaidOnceAndEndsAfterItsLimit() {
        var (liveness, progress) = (WatchdogState(), wellBeing(at: 0))
        #expect(liveness.look(at: progress, moment(0), options) == nil)
        for second in 1...20 {
            (progress.lastPoll, progress.lastTurn) = (moment(Double(second)), moment(Double(second)))
            progress.renderLimit = moment(2)
            let news = liveness.look(at: progress, moment(Double(second)), options)
            switch second {
            case 13: #expect(news == .stuck([.rendering(.seconds(11))]))
            case 18...: #expect(news == .hopeless([.rendering(.seconds(second - 2))]))
            default: #expect(news == nil)
            }
            #expect(liveness.isStuck == (second >= 13))
        }
        progress.renderLimit = nil
        (progress.lastPoll, progress.lastTurn) = (moment(21), moment(21))
        #expect(liveness.look(at: progress, moment(21), options) == .moves(.seconds(8)))
        #expect(!liveness.isStuck)
    }

    @Test func withoutALimitItStaysStuck() {
        var (liveness, options) = (WatchdogState(), options)
        options.exitAfter = nil
        let progress = wellBeing(at: 0)
        for second in 0..<1000 {
            let news = liveness.look(at: progress, moment(Double(second)), options)
            #expect((news != nil) == (second == 11))
        }
    }

    @Test func aProcessThatStoodStillItselfLooksAgainFirst() {
        var (liveness, progress) = (WatchdogState(), wellBeing(at: 0))
        #expect(liveness.look(at: progress, moment(1), options) == nil)
        // Stopped for a minute, and gone on a moment ago.
        #expect(liveness.look(at: progress, moment(61), options) == nil)
        (progress.lastPoll, progress.lastTurn) = (moment(61.5), moment(61.5))
        #expect(liveness.look(at: progress, moment(62), options) == nil)
        #expect(!liveness.isStuck)
    }
}
