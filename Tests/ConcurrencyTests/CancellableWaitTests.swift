import Concurrency
import Testing

@Suite struct CancellableWaitTests {
    /// A slot for the continuation of one waiter, a pattern that many types use.
    private final class Slot: Sendable {
        private let waiter = Lock<CheckedContinuation<Bool, Never>?>(nil)

        var isEmpty: Bool { waiter.withLock { $0 == nil } }

        func wait() async -> Bool {
            await withCancellableContinuation { continuation in
                waiter.withLock { $0 = continuation }
            } onCancel: {
                resume(returning: false)
            }
        }

        func resume(returning value: Bool) {
            waiter.withLock { waiter in
                defer { waiter = nil }
                return waiter
            }?.resume(returning: value)
        }
    }

    @Test func resumesTheWaiter() async {
        let slot = Slot()
        let task = Task { await slot.wait() }
        while slot.isEmpty { await Task.yield() }
        slot.resume(returning: true)
        #expect(await task.value)
    }

    @Test func cancellationResumesTheWaiter() async {
        let slot = Slot()
        let task = Task { await slot.wait() }
        while slot.isEmpty { await Task.yield() }
        task.cancel()
        #expect(await !task.value)
    }

    @Test func cancellationBeforeTheWaitTakesEffect() async {
        let slot = Slot()
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return await slot.wait()
        }
        #expect(await !task.value && slot.isEmpty)
    }

    @Test func cancellationRacingWithTheWaitIsNotMissed() async {
        for _ in 0..<1000 {
            let slot = Slot()
            let task = Task { await slot.wait() }
            task.cancel()
            #expect(await !task.value)
        }
    }

    @Test func throwsErrorsOfTheContinuation() async {
        await #expect(throws: CancellationError.self) {
            try await withCancellableThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                continuation.resume(throwing: CancellationError())
            } onCancel: {
            }
        }
    }

    @Test func taskIsCancelledWithItsWaiter() async throws {
        let inner = Task { try await Task.sleep(for: .seconds(3600)) }
        let outer = Task { await inner.resultCancelledWithWaiter }
        outer.cancel()
        await #expect(throws: CancellationError.self) { try await outer.value.get() }
        #expect(inner.isCancelled)
        #expect(await Task { 7 }.resultCancelledWithWaiter.get() == 7)
    }

    @Test func shieldedWorkIsNotCancelledWithItsCaller() async throws {
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return await withCancellationShield { Task.isCancelled }
        }
        #expect(await !task.value)
        #expect(task.isCancelled)
        await #expect(throws: CancellationError.self) {
            try await withCancellationShield { () async throws(CancellationError) -> Void in throw CancellationError() }
        }
    }

    /// An actor with a thread of its own, like a Kafka consumer.
    private actor LoopActor {
        let loop = EventLoop(name: "reader")
        nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

        /// Returns whether both kinds of wait run their bodies on the actor's own thread.
        func runsBodiesOnItsThread() async throws -> Bool {
            let first = await withCancellableContinuation { (continuation: CheckedContinuation<Bool, Never>) in
                continuation.resume(returning: loop.isCurrent)
            } onCancel: {
            }
            let second = try await withCancellableThrowingContinuation {
                (continuation: CheckedContinuation<Bool, any Error>) in
                continuation.resume(returning: loop.isCurrent)
            } onCancel: {
            }
            return first && second && loop.isCurrent
        }
    }

    @Test func runsItsBodyOnTheCallingActor() async throws {
        let loopActor = LoopActor()
        #expect(try await loopActor.runsBodiesOnItsThread())
        loopActor.loop.stop()
    }
}
