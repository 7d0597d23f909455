import Concurrency
import Testing

@Suite struct TimeLimitTests {
    private struct TooLate: Error {}

    @Test func whatEndsInTimeIsWaitedFor() async throws {
        let isDone = Lock(false)
        try await withDeadline(.now + .seconds(600), throwing: TooLate()) { isDone.withLock { $0 = true } }
        #expect(isDone.withLock { $0 })
    }

    @Test func whatTakesLongerIsCancelled() async throws {
        let wasCancelled = Lock(false)
        await #expect(throws: TooLate.self) {
            try await withDeadline(.now + .milliseconds(10), throwing: TooLate()) {
                while !Task.isCancelled { try? await Task.sleep(for: .milliseconds(5)) }
                wasCancelled.withLock { $0 = true }
            }
        }
        #expect(wasCancelled.withLock { $0 })
    }

    @Test func whatFailsSaysSoItself() async throws {
        struct Own: Error {}
        await #expect(throws: Own.self) {
            try await withDeadline(.now + .seconds(600), throwing: TooLate()) { throw Own() }
        }
    }
}
