import Testing

@testable import HalcyonKit

@Suite struct BackoffTests {
    @Test func pausesDoubleUpToTheLongest() {
        var backoff = Backoff(base: .seconds(2), maximum: .seconds(10))
        for longest in [2.0, 4, 8, 10, 10] {
            let pause = backoff.next().seconds
            #expect(pause >= longest && pause <= longest * 1.5)
        }
        backoff.reset()
        #expect(backoff.next() <= .seconds(3))
    }

    @Test func whatIsAskedForCountsWhereItIsLonger() {
        var backoff = Backoff(base: .milliseconds(1), maximum: .seconds(1))
        #expect(backoff.next(atLeast: .seconds(90)) == .seconds(90))
        backoff.base = .seconds(60)
        backoff.reset()
        #expect(backoff.next() >= .seconds(60), "a stream may ask for more than the longest")
    }

    @Test func timesAreWrittenWithoutAnExponent() {
        #expect(Duration.microseconds(1_050).secondsText == "0.001" && Duration.zero.secondsText == "0.000")
        #expect(Duration.milliseconds(25_030).secondsText == "25.030")
    }

    @Test func pausesAreNotEqual() {
        #expect(
            Set(
                (0..<20).map { _ in Backoff(base: .seconds(1), maximum: .seconds(1)) }.map { backoff in
                    var backoff = backoff
                    return backoff.next()
                }
            ).count > 1)
    }
}
