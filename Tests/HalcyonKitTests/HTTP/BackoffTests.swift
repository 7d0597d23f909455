import Testing

@testable import HalcyonKit

@Suite struct BackoffTests {
    @Test func delaysDoubleUpToTheMaximum() {
        var backoff = Backoff(base: .seconds(2), maximum: .seconds(10))
        for minimum in [2.0, 4, 8, 10, 10] {
            let delay = backoff.next().seconds
            #expect(delay >= minimum && delay <= minimum * 1.5)
        }
        backoff.reset()
        #expect(backoff.next() <= .seconds(3))
    }

    @Test func respectsALongerRequestedDelay() {
        var backoff = Backoff(base: .milliseconds(1), maximum: .seconds(1))
        #expect(backoff.next(atLeast: .seconds(90)) == .seconds(90))
        backoff.base = .seconds(60)
        backoff.reset()
        #expect(backoff.next() >= .seconds(60), "a stream may request more than the maximum")
    }

    @Test func formatsSecondsWithoutAnExponent() {
        #expect(Duration.microseconds(1_050).secondsText == "0.001" && Duration.zero.secondsText == "0.000")
        #expect(Duration.milliseconds(25_030).secondsText == "25.030")
    }

    @Test func randomizesDelays() {
        #expect(
            Set(
                (0..<20).map { _ in Backoff(base: .seconds(1), maximum: .seconds(1)) }.map { backoff in
                    var backoff = backoff
                    return backoff.next()
                }
            ).count > 1)
    }
}
