import Threads

/// Records that were handed over to a transaction together, and what became of each.
public final class TransactionSends: Sendable {
    private struct State {
        var left: Int
        var failures: [Int: KafkaError] = [:]
        var waiter: CheckedContinuation<Void, Never>?
    }

    private let state: Lock<State>

    init(count: Int) { state = Lock(State(left: count)) }

    func ended(_ index: Int, _ error: KafkaError?) {
        let waiter = state.withLock { state in
            state.left -= 1
            if let error { state.failures[index] = error }
            return state.left == 0 ? state.waiter.take() : nil
        }
        waiter?.resume()
    }

    /// Whether some have failed already: librdkafka refuses at once what is too large, and then the others can be committed. Who wants all or
    /// nothing looks here before.
    public var hasFailures: Bool { state.withLock { !$0.failures.isEmpty } }

    /// What failed, by place among the records. To be asked for once: it waits until all are known, at the latest when the transaction has
    /// been committed or aborted, or the producer closed. Records that an abort took back have failed too (``KafkaError/Code/purgedFromQueue``,
    /// ``KafkaError/Code/purgedInFlight``).
    public func failures() async -> [Int: KafkaError] {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                if state.left > 0 { state.waiter = continuation }
                return state.left == 0
            }
            if isOver { continuation.resume() }
        }
        return state.withLock { $0.failures }
    }
}
