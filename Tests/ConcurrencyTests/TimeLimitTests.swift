import Concurrency
import Testing

@Suite struct TimeLimitTests {
    private struct DeadlineExceeded: Error {}

    @Test func waitsForAnOperationWithinTheDeadline() async throws {
        let isDone = Lock(false)
        try await withDeadline(.now + .seconds(600), throwing: DeadlineExceeded()) { isDone.withLock { $0 = true } }
        #expect(isDone.withLock { $0 })
    }

    @Test func cancelsAnOperationAtTheDeadline() async throws {
        let wasCancelled = Lock(false)
        await #expect(throws: DeadlineExceeded.self) {
            try await withDeadline(.now + .milliseconds(10), throwing: DeadlineExceeded()) {
                while !Task.isCancelled { try? await Task.sleep(for: .milliseconds(5)) }
                wasCancelled.withLock { $0 = true }
            }
        }
        #expect(wasCancelled.withLock { $0 })
    }

    @Test func rethrowsErrorsOfTheOperation() async throws {
        struct OperationError: Error {}
        await #expect(throws: OperationError.self) {
            try await withDeadline(.now + .seconds(600), throwing: DeadlineExceeded()) { throw OperationError() }
        }
    }
}
