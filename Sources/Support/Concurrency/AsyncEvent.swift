/// A one-shot event that tasks can wait for.
public final class AsyncEvent: Sendable {
    private struct State {
        var isSignaled = false
        var count = 0
        var waiters: [Int: CheckedContinuation<Void, Never>] = [:]
    }

    private let state = Lock(State())

    /// Creates an event that has not been signaled.
    public init() {}

    /// True if the event has been signaled.
    public var isSignaled: Bool { state.withLock { $0.isSignaled } }

    /// Signals the event and resumes all waiters. A second call does nothing.
    public func signal() {
        let waiters = state.withLock { state in
            state.isSignaled = true
            defer { state.waiters = [:] }
            return state.waiters
        }
        for waiter in waiters.values { waiter.resume() }
    }

    /// Waits until the event is signaled or the task is cancelled.
    public func wait() async {
        // Fast path: most callers wait again on an event that is already signaled.
        if isSignaled { return }
        let number = state.withLock { state in
            state.count += 1
            return state.count
        }
        await withCancellableContinuation { continuation in
            let isSignaled = state.withLock { state in
                if !state.isSignaled { state.waiters[number] = continuation }
                return state.isSignaled
            }
            if isSignaled { continuation.resume() }
        } onCancel: {
            state.withLock { $0.waiters.removeValue(forKey: number) }?.resume()
        }
    }
}

extension AsyncEvent {
    /// Waits until the event is signaled, but at most for `limit`.
    /// - Throws: `CancellationError` if the task is cancelled first.
    public func wait(atMost limit: Duration) async throws {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.wait() }
            group.addTask { await Task.sleepUnlessCancelled(for: limit) }
            await group.next()
            group.cancelAll()
        }
        try Task.checkCancellation()
    }
}

/// A value that one thread provides and others wait for. For threads that may block, where no task could be suspended.
public final class BlockingPromise<Value: Sendable>: Sendable {
    private let value = ConditionLock<Value?>(nil)

    /// Creates a promise without a value.
    public init() {}

    /// Provides the value. Call this only once.
    public func fulfill(_ value: Value) {
        self.value.withLock { given in
            precondition(given == nil, "promise fulfilled twice")
            given = value
        }
        self.value.broadcast()
    }

    /// Waits for the value. Blocks: never call it on a task's thread.
    public func wait() -> Value { value.wait { $0 } }
}
