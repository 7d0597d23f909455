import Testing

@testable import HalcyonCluster

@Suite struct FlowLimiterTests {
    private func limiter(inFlight: [String: Int] = [:], rates: [String: Double] = [:]) -> FlowLimiter {
        var limits = FlowLimiter.Limits()
        (limits.inFlight, limits.rates) = (inFlight, rates)
        return FlowLimiter(limits)
    }

    @Test func limitsJobsInFlight() {
        let limiter = limiter(inFlight: ["a": 3])
        #expect((0..<5).map { _ in limiter.begin("a") } == [true, true, true, false, false])
        limiter.end(2, of: "a")
        #expect((0..<3).map { _ in limiter.begin("a") } == [true, true, false])
        #expect((0..<100).allSatisfy { _ in limiter.begin("b") && limiter.begin(nil) })
    }

    @Test func membersShareTheLimits() {
        let limiter = limiter(inFlight: ["a": 10], rates: ["b": 20])
        limiter.setMembers(4)
        #expect((0..<5).map { _ in limiter.begin("a") } == [true, true, false, false, false])
        limiter.setMembers(100)
        limiter.end(2, of: "a")
        #expect(limiter.begin("a") && !limiter.begin("a"))
        limiter.setMembers(4)
        // A burst of one, and five per second.
        let now = ContinuousClock.now
        #expect(limiter.begin("b", at: now) && !limiter.begin("b", at: now + .milliseconds(199)))
        #expect(limiter.begin("b", at: now + .milliseconds(200)))
    }

    @Test func limitsTheRate() {
        let limiter = limiter(rates: ["a": 100])
        let start = ContinuousClock.now
        var count = 0
        for milliseconds in 0..<10_000 where limiter.begin("a", at: start + .milliseconds(milliseconds)) { count += 1 }
        #expect((1000...1021).contains(count))
    }

    @Test func anyOtherFlowHasItsOwnLimit() {
        let limiter = limiter(inFlight: ["a": 2, "*": 1])
        #expect(limiter.begin("a") && limiter.begin("a") && !limiter.begin("a"))
        #expect(limiter.begin("b") && !limiter.begin("b") && limiter.begin("c"))
        #expect(limiter.begin(nil) && limiter.begin(nil))
        #expect(limiter.isLimited("b") && !limiter.isLimited(nil))
    }
}
