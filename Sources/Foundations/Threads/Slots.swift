/// A number of places that tasks take in the order they ask: an asynchronous semaphore.
public final class Slots: Sendable {
    private struct Waiter {
        let number: UInt64
        let continuation: CheckedContinuation<Void, any Error>
    }

    private struct State {
        var free: Int
        var waiters: [Waiter] = []
        var nextNumber: UInt64 = 0
        var cancelled: Set<UInt64> = []
    }

    private let state: Lock<State>

    /// - Parameter count: how many tasks may hold a place at once.
    public init(_ count: Int) {
        precondition(count > 0, "there must be a place")
        state = Lock(State(free: count))
    }

    /// Waits for a place. Whoever got one gives it back with ``release()``.
    /// - Throws: `CancellationError` when the task is cancelled first.
    public func acquire() async throws {
        let number: UInt64? = state.withLock { state in
            if state.free > 0 {
                state.free -= 1
                return nil
            }
            state.nextNumber += 1
            return state.nextNumber
        }
        guard let number else { return }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let waiter = Waiter(number: number, continuation: continuation)
                let outcome: Result<Void, any Error>? = state.withLock { state in
                    if state.cancelled.remove(number) != nil { return .failure(CancellationError()) }
                    if state.free > 0 {
                        state.free -= 1
                        return .success(())
                    }
                    state.waiters.append(waiter)
                    return nil
                }
                if let outcome { continuation.resume(with: outcome) }
            }
        } onCancel: {
            let waiter: Waiter? = state.withLock { state in
                guard let index = state.waiters.firstIndex(where: { $0.number == number }) else {
                    // Not in the queue yet, or served already: the mark is looked at before queueing.
                    state.cancelled.insert(number)
                    return nil
                }
                return state.waiters.remove(at: index)
            }
            waiter?.continuation.resume(throwing: CancellationError())
        }
        state.withLock { _ = $0.cancelled.remove(number) }
    }

    /// Gives a place back, to the task that has waited longest.
    public func release() {
        let waiter: Waiter? = state.withLock { state in
            if state.waiters.isEmpty {
                state.free += 1
                return nil
            }
            return state.waiters.removeFirst()
        }
        waiter?.continuation.resume()
    }

    /// How many tasks wait.
    public var waiting: Int { state.withLock { $0.waiters.count } }
}
