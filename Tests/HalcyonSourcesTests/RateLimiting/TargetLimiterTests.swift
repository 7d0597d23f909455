import Concurrency
import HalcyonSources
import TestSupport
import Testing

@Suite struct TargetLimiterTests {
    private let one = Origin("https://a")
    private let other = Origin("https://b")

    private func limiter(concurrency: Int = 2, queue: Int = 1, failures: Int = 2) -> TargetLimiter {
        var limits = TargetLimits()
        (limits.concurrency, limits.queue, limits.failures) = (concurrency, queue, failures)
        return TargetLimiter(limits)
    }

    @Test func limitsConcurrencyAndQueuePerTarget() async throws {
        let limiter = limiter()
        #expect(try await limiter.acquire(one))
        #expect(try await limiter.acquire(one))
        // The waiter fills the queue, unless one of the others below is there at that moment.
        let waiting = Task { while try await !limiter.acquire(one) { await Task.yield() } }
        try await until("the queue is full") {
            let task = Task { try await limiter.acquire(one) }
            task.cancel()
            return try await task.value == false
        }
        #expect(try await limiter.acquire(other))
        limiter.release(one, .success)
        try await waiting.value
    }

    @Test func waitingEndsAtTheDeadline() async throws {
        let limiter = limiter(concurrency: 1)
        #expect(try await limiter.acquire(one))
        #expect(try await limiter.acquire(one, until: .now + .milliseconds(20)) == false)
        #expect(try await limiter.acquire(other, until: .now))
        // The deadline has left no entry in the queue.
        let waiting = Task { try await limiter.acquire(one, until: .now + .seconds(600)) }
        limiter.release(one, .success)
        #expect(try await waiting.value)
    }

    @Test func waiterCanBeCancelled() async throws {
        let limiter = limiter(concurrency: 1)
        #expect(try await limiter.acquire(one))
        let waiting = Task { try await limiter.acquire(one) }
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
        limiter.release(one, .success)
        #expect(try await limiter.acquire(one))
    }

    @Test func openBreakerAllowsOneProbeUntilSuccess() async throws {
        let limiter = limiter()
        for _ in 0..<2 {
            #expect(try await limiter.acquire(one))
            limiter.release(one, .failure)
        }
        for outcome in [TargetLimiter.Breaker.Outcome.unknown, .failure, .success] {
            #expect(try await limiter.acquire(one))
            #expect(try await limiter.acquire(one) == false)
            #expect(try await limiter.acquire(other))
            limiter.release(other, .success)
            limiter.release(one, outcome)
        }
        #expect(try await limiter.acquire(one))
        #expect(try await limiter.acquire(one))
    }

    @Test func openingRejectsAllWaitersButOne() async throws {
        let limiter = limiter(queue: 2)
        #expect(try await limiter.acquire(one))
        #expect(try await limiter.acquire(one))
        let waiting = (0..<2).map { _ in Task { try await limiter.acquire(one) } }
        try await until("both tasks wait") {
            let task = Task { try await limiter.acquire(one) }
            task.cancel()
            return try await task.value == false
        }
        limiter.release(one, .failure)
        limiter.release(one, .failure)
        var acquired = 0
        for task in waiting where try await task.value { acquired += 1 }
        #expect(acquired == 1)
    }
}
