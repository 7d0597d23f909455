import Testing

@testable import HalcyonKit

@Suite struct BackOffTests {
    @Test func pausesDoubleUpToTheLongest() {
        var backOff = BackOff(base: .seconds(2), longest: .seconds(10))
        for longest in [2.0, 4, 8, 10, 10] {
            let pause = backOff.next().seconds
            #expect(pause >= longest && pause <= longest * 1.5)
        }
        backOff.reset()
        #expect(backOff.next() <= .seconds(3))
    }

    @Test func whatIsAskedForCountsWhereItIsLonger() {
        var backOff = BackOff(base: .milliseconds(1), longest: .seconds(1))
        #expect(backOff.next(atLeast: .seconds(90)) == .seconds(90))
        backOff.base = .seconds(60)
        backOff.reset()
        #expect(backOff.next() >= .seconds(60), "a stream may ask for more than the longest")
    }

    @Test func timesAreWrittenWithoutAnExponent() {
        #expect(Duration.microseconds(1_050).inMilliseconds == "0.001" && Duration.zero.inMilliseconds == "0.000")
        #expect(Duration.milliseconds(25_030).inMilliseconds == "25.030")
    }

    @Test func pausesAreNotEqual() {
        #expect(
            Set(
                (0..<20).map { _ in BackOff(base: .seconds(1), longest: .seconds(1)) }.map { backOff in
                    var backOff = backOff
                    return backOff.next()
                }
            ).count > 1)
    }
}
