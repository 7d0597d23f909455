import HalcyonModel
import Testing

@Suite struct FailureTests {
    @Test(arguments: [
        Failure(.notFound, "the origin answered 404"), Failure(.timeout, ""),
        Failure(.httpError, "the origin answered 503: later", retryAfter: 12.5),
        Failure(.tlsError, "no trust", isRetryable: true), Failure(.httpError, "405", isRetryable: false),
        Failure(.tooManyPixels, "the output is too large", variant: 0),
    ]) func goesFromWorkerToWorker(failure: Failure) {
        #expect(Failure(shared: failure.shared) == failure)
    }

    @Test(arguments: [nil, 12.5]) func thatNothingStaleWillDoGoesAlong(after seconds: Double?) {
        var failure = Failure(.httpError, "the origin answered 429", isRetryable: true, retryAfter: seconds)
        failure.forbidsStaleUse = true
        #expect(Failure(shared: failure.shared) == failure)
    }

    @Test(arguments: ["", "http_error", "http_error retryable", "nonsense final x"])
    func whatIsNoneIsNone(text: String) { #expect(Failure(shared: text) == nil) }

    @Test(arguments: ["nan", "inf", "-1", "x", ""]) func aTimeThatIsNoneIsLeftOut(text: String) {
        #expect(Failure(shared: "timeout retryable:\(text) slow") == Failure(.timeout, "slow"))
    }

    @Test func theLongestWaitHolds() {
        let failure = Failure(.httpError, "503").notBefore(5)
        #expect(failure.retryAfter == 5)
        #expect(failure.notBefore(3).retryAfter == 5 && failure.notBefore(8).retryAfter == 8)
        #expect(failure.later(by: 2).retryAfter == 3 && failure.later(by: 5).retryAfter == nil)
        #expect(Failure(.httpError, "503").later(by: 2).retryAfter == nil)
    }
}
