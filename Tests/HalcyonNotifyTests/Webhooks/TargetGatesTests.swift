import HalcyonSources
import TestSupport
import Testing
import Threads

@testable import HalcyonNotify

@Suite struct TargetGatesTests {
    private let one = Origin("https://a")
    private let other = Origin("https://b")

    private func gates(concurrency: Int = 2, queue: Int = 1, failures: Int = 2) -> TargetGates {
        var limits = TargetLimits()
        (limits.concurrency, limits.queue, limits.failures) = (concurrency, queue, failures)
        return TargetGates(limits)
    }

    @Test func ofOneTargetSoManyGoOnSoManyWaitAndTheRestIsPutOff() async throws {
        let gates = gates()
        #expect(try await gates.enter(one))
        #expect(try await gates.enter(one))
        let waiting = Task { try await gates.enter(one) }
        // The one that waits leaves no room for another.
        try await until("there is no room") {
            let task = Task { try await gates.enter(one) }
            task.cancel()
            return try await task.value == false
        }
        #expect(try await gates.enter(other))
        gates.leave(one, .success)
        #expect(try await waiting.value)
    }

    @Test func whoeverWaitsMayGiveUp() async throws {
        let gates = gates(concurrency: 1)
        #expect(try await gates.enter(one))
        let waiting = Task { try await gates.enter(one) }
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
        gates.leave(one, .success)
        #expect(try await gates.enter(one))
    }

    @Test func aTargetThatIsDownIsTriedByOneAtATimeUntilItAnswers() async throws {
        let gates = gates()
        for _ in 0..<2 {
            #expect(try await gates.enter(one))
            gates.leave(one, .failure)
        }
        for outcome in [TargetGates.Breaker.Outcome.unknown, .failure, .success] {
            #expect(try await gates.enter(one))
            #expect(try await gates.enter(one) == false)
            #expect(try await gates.enter(other))
            gates.leave(other, .success)
            gates.leave(one, outcome)
        }
        #expect(try await gates.enter(one))
        #expect(try await gates.enter(one))
    }

    @Test func whoWaitedForATargetThatIsDownByNowIsPutOff() async throws {
        let gates = gates(queue: 2)
        #expect(try await gates.enter(one))
        #expect(try await gates.enter(one))
        let waiting = (0..<2).map { _ in Task { try await gates.enter(one) } }
        try await until("both wait") {
            let task = Task { try await gates.enter(one) }
            task.cancel()
            return try await task.value == false
        }
        gates.leave(one, .failure)
        gates.leave(one, .failure)
        var letIn = 0
        for task in waiting where try await task.value { letIn += 1 }
        #expect(letIn == 1)
    }
}
