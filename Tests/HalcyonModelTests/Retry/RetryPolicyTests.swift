import HalcyonModel
import Testing

@Suite struct RetryPolicyTests {
    static let delays = [10.0, 60, 600]
    static let unavailable = JobError(.httpError, "the origin answered 503")

    private func decide(
        _ failure: JobError = unavailable, attempts: Int, elapsed: Double = 0, left: Double? = nil, topic: Int? = nil,
        delays: [Double] = delays, dice: Double = 0.5, _ change: (inout RetryPolicy) -> Void = { _ in }
    ) -> RetryPolicy.Decision {
        var policy = RetryPolicy()
        policy.attempts = 6
        change(&policy)
        return policy.decide(
            failure, RetryPolicy.RetryContext(attempts: attempts, elapsed: elapsed, left: left, topic: topic),
            delays: delays,
            dice: dice)
    }

    @Test func shortDelaysDoubleWithFullJitter() {
        for (attempts, ceiling) in [(1, 0.5), (2, 1.0), (3, 2.0)] {
            #expect(decide(attempts: attempts, dice: 0) == .now(after: 0))
            #expect(decide(attempts: attempts, dice: 1) == .now(after: ceiling))
        }
    }

    @Test func longDelaysUseSuccessiveRetryTopics() {
        #expect(decide(attempts: 4, dice: 1) == .later(topic: 0, after: 10))
        #expect(decide(attempts: 4, dice: 0) == .later(topic: 0, after: 2))
        #expect(decide(attempts: 5, topic: 0, dice: 0) == .later(topic: 1, after: 10))
        #expect(decide(attempts: 5, topic: 0, dice: 1) == .later(topic: 1, after: 60))
        #expect(decide(attempts: 5, topic: 1, dice: 0.5) == .later(topic: 2, after: 330))
        // The last topic is used again while attempts remain.
        #expect(decide(attempts: 5, topic: 2, dice: 1) == .later(topic: 2, after: 600))
        // A job from a retry topic is not retried in process.
        #expect(decide(attempts: 1, topic: 0, dice: 0) == .later(topic: 1, after: 10))
    }

    @Test func jitterSpreadsRetriesOfConcurrentFailures() {
        var waits: Set<Int> = []
        for _ in 0..<1000 {
            guard
                case .later(_, let wait) = RetryPolicy().decide(
                    Self.unavailable, RetryPolicy.RetryContext(attempts: 4), delays: Self.delays)
            else { return #expect(Bool(false)) }
            #expect((2...10).contains(wait))
            waits.insert(Int(wait))
        }
        #expect(waits.count == 8)
    }

    @Test func respectsRetryAfter() {
        #expect(decide(Self.unavailable.retryAfter(atLeast: 1), attempts: 1, dice: 0) == .now(after: 1))
        #expect(decide(Self.unavailable.retryAfter(atLeast: 1), attempts: 1, dice: 1) == .now(after: 1.5))
        // With jitter, the delay would exceed the in-process limit.
        #expect(decide(Self.unavailable.retryAfter(atLeast: 1.8), attempts: 1, dice: 0) == .later(topic: 0, after: 2))
        #expect(decide(Self.unavailable.retryAfter(atLeast: 7), attempts: 1, dice: 0) == .later(topic: 0, after: 7))
        // A topic with exactly this delay would retry all of them at once.
        #expect(decide(Self.unavailable.retryAfter(atLeast: 10), attempts: 1, dice: 0) == .later(topic: 1, after: 10))
        #expect(decide(Self.unavailable.retryAfter(atLeast: 120), attempts: 1, dice: 0) == .later(topic: 2, after: 120))
        // Longer than all delays: the longest is used.
        #expect(
            decide(Self.unavailable.retryAfter(atLeast: 86_400), attempts: 1, dice: 0.5) == .later(topic: 2, after: 600)
        )
    }

    @Test func givesUpOnPermanentErrors() {
        #expect(decide(JobError(.notFound, "the origin answered 404"), attempts: 1) == .giveUp(.final))
        #expect(decide(JobError(.httpError, "405", isRetryable: false), attempts: 1) == .giveUp(.final))
        for code in JobErrorCode.allCases {
            let isGivenUp = decide(JobError(code, ""), attempts: 1) == .giveUp(.final)
            #expect(isGivenUp == !code.isRetryable)
        }
    }

    @Test func givesUpWhenAttemptsOrBudgetAreExhausted() {
        #expect(decide(attempts: 6, topic: 2) == .giveUp(.attempts))
        #expect(decide(attempts: 1) { $0.attempts = 1 } == .giveUp(.attempts))
        #expect(RetryPolicy.once.attempts == 1)
        #expect(decide(attempts: 5, elapsed: 1201, topic: 1, dice: 1) == .giveUp(.budget))
        #expect(decide(attempts: 5, elapsed: 1200, topic: 1, dice: 1) == .later(topic: 2, after: 600))
        #expect(decide(attempts: 4, delays: []) == .giveUp(.attempts))
        #expect(decide(attempts: 100, topic: 0) { $0.attempts = .max } == .later(topic: 1, after: 35))
        #expect(decide(attempts: 100, delays: []) { $0.attempts = .max } == .giveUp(.attempts))
    }

    @Test func givesUpIfTheRetryWouldMissTheDeadline() {
        #expect(decide(attempts: 1, left: 0.25, dice: 0.5) == .giveUp(.deadline))
        #expect(decide(attempts: 1, left: 0.26, dice: 0.5) == .now(after: 0.25))
        #expect(decide(attempts: 4, left: 5, dice: 0.5) == .giveUp(.deadline))
        #expect(RetryExhaustedReason.allCases.filter(\.isForLater) == [.attempts, .budget])
    }

    @Test func usesOnlyTopicsWithoutInProcessDelays() {
        #expect(decide(attempts: 1, dice: 0) { $0.inProcess = 0 } == .later(topic: 0, after: 0))
        #expect(decide(attempts: 1, dice: 1) { $0.inProcess = 0 } == .later(topic: 0, after: 10))
    }
}
