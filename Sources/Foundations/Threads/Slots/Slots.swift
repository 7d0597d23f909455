/// A number of places that tasks take in the order they ask: an asynchronous semaphore. With several levels of urgency each has its
/// share of the places that become free, so that the urgent ones are quick and none starves.
public final class Slots: Sendable {
    private typealias Waiter = CheckedContinuation<Void, any Error>

    private struct State {
        var free: Int
        var queue: SlotQueue<Waiter>
        var nextNumber: UInt64 = 0
        var cancelled: Set<UInt64> = []
    }

    /// Of each level of urgency, the most urgent first.
    public let shares: [Int]
    private let state: Lock<State>

    /// - Parameters:
    ///   - count: how many tasks may hold a place at once.
    ///   - shares: of each level of urgency, the most urgent first.
    public init(_ count: Int, shares: [Int] = [1]) {
        precondition(count > 0, "there must be a place")
        self.shares = shares
        state = Lock(State(free: count, queue: SlotQueue(shares: shares)))
    }

    /// Waits for a place. Whoever got one gives it back with ``release()``.
    /// - Parameter urgency: of whoever waits; it is followed while it rises. Without one it is the least.
    /// - Throws: `CancellationError` when the task is cancelled first.
    public func acquire(_ urgency: Urgency? = nil) async throws {
        let number: UInt64? = state.withLock { state in
            if state.free > 0 {
                state.free -= 1
                return nil
            }
            state.nextNumber += 1
            return state.nextNumber
        }
        guard let number else { return }
        let listener = urgency?.listen { level in self.state.withLock { $0.queue.raise(number, to: level) } }
        defer { listener?.end() }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let outcome: Result<Void, any Error>? = state.withLock { state in
                    if state.cancelled.remove(number) != nil { return .failure(CancellationError()) }
                    if state.free > 0 {
                        state.free -= 1
                        return .success(())
                    }
                    state.queue.append(continuation, number: number, level: .max)
                    return nil
                }
                if let outcome { return continuation.resume(with: outcome) }
                // Asked for only now, so that no rise between the two is missed.
                if let level = urgency?.level { state.withLock { $0.queue.raise(number, to: level) } }
            }
        } onCancel: {
            let waiter: Waiter? = state.withLock { state in
                if let waiter = state.queue.remove(number) { return waiter }
                // Not in the queue yet, or served already: the mark is looked at before queueing.
                state.cancelled.insert(number)
                return nil
            }
            waiter?.resume(throwing: CancellationError())
        }
        state.withLock { _ = $0.cancelled.remove(number) }
    }

    /// Takes more places for what has turned out to be larger than one, at once, whether or not they are free: nobody gets one until as many
    /// have been given back.
    public func take(_ count: Int) { state.withLock { $0.free -= count } }

    /// Gives places back, to those whose turn it is.
    public func release(_ count: Int = 1) {
        let waiters: [Waiter] = state.withLock { state in
            state.free += count
            var waiters: [Waiter] = []
            while state.free > 0, let waiter = state.queue.popNext() {
                state.free -= 1
                waiters.append(waiter)
            }
            return waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    /// How many tasks wait.
    public var waiting: Int { state.withLock { $0.queue.count } }
}
