import Foundation
import HalcyonModel
import Testing

@Suite struct JobErrorTests {
    private struct Refused: Error, CustomStringConvertible {
        enum Code { case full }
        let code = Code.full
        let description: String
    }

    @Test func keepsCauseButExcludesItFromEquality() throws {
        let failure = JobError(.internal, "it was not stored", cause: Refused(description: "no room"))
        #expect(failure == JobError(.internal, "it was not stored"))
        #expect(Set([failure, JobError(.internal, "it was not stored")]).count == 1)
        #expect(failure.within("here").forVariant(1).retryAfter(atLeast: 5).cause is Refused)
        #expect(!failure.shared.contains("room") && !"\(failure)".contains("room"))
        #expect(
            DescribedError(JobError(.timeout, "late", cause: failure)).description
                == "Failure.timeout: late (Failure.internal: it was not stored (Refused.full: no room))")
    }

    /// Errors of render processes reach workers this way.
    @Test func encodesCauseAsItsDescription() throws {
        func sent(_ failure: JobError) throws -> JobError {
            try JSONDecoder().decode(JobError.self, from: JSONEncoder().encode(failure))
        }
        let failure = JobError(.corruptImage, "damaged", variant: 2, cause: Refused(description: "no end"))
        let twice = try sent(sent(failure))
        #expect(twice == failure)
        #expect((twice.cause as? DescribedError)?.description == "Refused.full: no end")
        #expect(try sent(JobError(.gone, "410")).cause == nil)
    }

    @Test(arguments: [
        JobError(.notFound, "the origin answered 404"), JobError(.timeout, ""),
        JobError(.httpError, "the origin answered 503: later", retryAfter: 12.5),
        JobError(.tlsError, "no trust", isRetryable: true), JobError(.httpError, "405", isRetryable: false),
        JobError(.tooManyPixels, "the output is too large", variant: 0),
    ]) func roundTripsThroughSharedText(failure: JobError) {
        #expect(JobError(shared: failure.shared) == failure)
    }

    @Test(arguments: [nil, 12.5]) func sharedTextKeepsForbidsStaleUse(after seconds: Double?) {
        var failure = JobError(.httpError, "the origin answered 429", isRetryable: true, retryAfter: seconds)
        failure.forbidsStaleUse = true
        #expect(JobError(shared: failure.shared) == failure)
    }

    @Test(arguments: ["", "http_error", "http_error retryable", "nonsense final x"])
    func rejectsInvalidSharedText(text: String) { #expect(JobError(shared: text) == nil) }

    @Test(arguments: ["nan", "inf", "-1", "x", ""]) func ignoresInvalidRetryAfterInSharedText(text: String) {
        #expect(JobError(shared: "timeout retryable:\(text) slow") == JobError(.timeout, "slow"))
    }

    @Test func keepsTheLongestRetryAfter() {
        let failure = JobError(.httpError, "503").retryAfter(atLeast: 5)
        #expect(failure.retryAfter == 5)
        #expect(failure.retryAfter(atLeast: 3).retryAfter == 5 && failure.retryAfter(atLeast: 8).retryAfter == 8)
        #expect(failure.delayed(by: 2).retryAfter == 3 && failure.delayed(by: 5).retryAfter == nil)
        #expect(JobError(.httpError, "503").delayed(by: 2).retryAfter == nil)
    }
}
