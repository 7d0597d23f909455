import Concurrency
import HalcyonSources
import TestSupport
import Testing

@testable import HalcyonNotifications

@Suite struct WebhookCircuitBreakersTests {
    private let one = Origin("https://a")
    private let other = Origin("https://b")

    private func breakers(concurrency: Int = 2, queue: Int = 1, failures: Int = 2) -> WebhookCircuitBreakers {
        var limits = TargetLimits()
        (limits.concurrency, limits.queue, limits.failures) = (concurrency, queue, failures)
        return WebhookCircuitBreakers(limits)
    }

    @Test func limitsConcurrencyAndQueuePerTarget() async throws {
        let breakers = breakers()
        #expect(try await breakers.acquire(one))
        #expect(try await breakers.acquire(one))
        let waiting = Task { try await breakers.acquire(one) }
        // The waiter fills the queue.
        try await until("the queue is full") {
            let task = Task { try await breakers.acquire(one) }
            task.cancel()
            return try await task.value == false
        }
        #expect(try await breakers.acquire(other))
        breakers.release(one, .success)
        #expect(try await waiting.value)
    }

    @Test func waiterCanBeCancelled() async throws {
        let breakers = breakers(concurrency: 1)
        #expect(try await breakers.acquire(one))
        let waiting = Task { try await breakers.acquire(one) }
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
        breakers.release(one, .success)
        #expect(try await breakers.acquire(one))
    }

    @Test func openBreakerAllowsOneProbeUntilSuccess() async throws {
        let breakers = breakers()
        for _ in 0..<2 {
            #expect(try await breakers.acquire(one))
            breakers.release(one, .failure)
        }
        for outcome in [WebhookCircuitBreakers.Breaker.Outcome.unknown, .failure, .success] {
            #expect(try await breakers.acquire(one))
            #expect(try await breakers.acquire(one) == false)
            #expect(try await breakers.acquire(other))
            breakers.release(other, .success)
            breakers.release(one, outcome)
        }
        #expect(try await breakers.acquire(one))
        #expect(try await breakers.acquire(one))
    }

    @Test func openingRejectsAllWaitersButOne() async throws {
        let breakers = breakers(queue: 2)
        #expect(try await breakers.acquire(one))
        #expect(try await breakers.acquire(one))
        let waiting = (0..<2).map { _ in Task { try await breakers.acquire(one) } }
        try await until("both tasks wait") {
            let task = Task { try await breakers.acquire(one) }
            task.cancel()
            return try await task.value == false
        }
        breakers.release(one, .failure)
        breakers.release(one, .failure)
        var acquired = 0
        for task in waiting where try await task.value { acquired += 1 }
        #expect(acquired == 1)
    }
}
