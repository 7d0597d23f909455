import Foundation
import HalcyonModel
import Testing

@Suite struct FailureTests {
    private struct Refused: Error, CustomStringConvertible {
        enum Code { case full }
        let code = Code.full
        let description: String
    }

    @Test func itsCauseIsKeptAndNoPartOfIt() throws {
        let failure = Failure(.internal, "it was not stored", cause: Refused(description: "no room"))
        #expect(failure == Failure(.internal, "it was not stored"))
        #expect(Set([failure, Failure(.internal, "it was not stored")]).count == 1)
        #expect(failure.within("here").of(variant: 1).notBefore(5).cause is Refused)
        #expect(!failure.shared.contains("room") && !"\(failure)".contains("room"))
        #expect(
            DescribedError(Failure(.timeout, "late", cause: failure)).description
                == "Failure.timeout: late (Failure.internal: it was not stored (Refused.full: no room))")
    }

    /// As failures of children come to their workers.
    @Test func itsCauseGoesToAnotherProcessInWords() throws {
        func sent(_ failure: Failure) throws -> Failure {
            try JSONDecoder().decode(Failure.self, from: JSONEncoder().encode(failure))
        }
        let failure = Failure(.corruptImage, "damaged", variant: 2, cause: Refused(description: "no end"))
        let twice = try sent(sent(failure))
        #expect(twice == failure)
        #expect((twice.cause as? DescribedError)?.description == "Refused.full: no end")
        #expect(try sent(Failure(.gone, "410")).cause == nil)
    }

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
