import Testing

@testable import Kafka

@Suite struct ConnectionMonitorTests {
    @Test func clearsASuspicionWithoutAWord() {
        var watch = ConnectionMonitor()
        #expect(watch.probe == nil)
        watch.allBrokersDown()
        #expect(watch.probe != nil)
        #expect(watch.probed(answered: true) == nil)
        #expect(watch.probe == nil)
    }

    @Test func tellsALossAndAReturnOnce() {
        var watch = ConnectionMonitor()
        watch.allBrokersDown()
        #expect(watch.probed(answered: false) == .lost)
        watch.allBrokersDown()
        #expect(watch.probed(answered: false) == nil)
        #expect(watch.probed(answered: true) == .restored)
        #expect(watch.probe == nil)
    }
}

@Suite struct MillisecondsTests {
    @Test func roundsUpAndStaysInRange() {
        #expect(Duration.milliseconds(250).milliseconds == 250)
        #expect(Duration.microseconds(1).milliseconds == 1)
        #expect(Duration.zero.milliseconds == 0)
        #expect(Duration.seconds(-3).milliseconds == 0)
        #expect(Duration.seconds(Int64.max).milliseconds == .max)
    }
}
