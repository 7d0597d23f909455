/// Something that happens once, and who waits for it.
public final class Gate: Sendable {
    private struct State {
        var isOpen = false
        var count = 0
        var waiters: [Int: CheckedContinuation<Void, Never>] = [:]
    }

    private let state = Lock(State())

    /// A closed one.
    public init() {}

    /// Whether it has happened.
    public var isOpen: Bool { state.withLock { $0.isOpen } }

    /// It has happened. A second call does nothing.
    public func open() {
        let waiters = state.withLock { state in
            state.isOpen = true
            defer { state.waiters = [:] }
            return state.waiters
        }
        for waiter in waiters.values { waiter.resume() }
    }

    /// Returns when it has happened, or the task is cancelled.
    public func wait() async {
        // Most ask often, and find it open all but the first time.
        if isOpen { return }
        let number = state.withLock { state in
            state.count += 1
            return state.count
        }
        await withCancellableContinuation { continuation in
            let isOpen = state.withLock { state in
                if !state.isOpen { state.waiters[number] = continuation }
                return state.isOpen
            }
            if isOpen { continuation.resume() }
        } onCancel: {
            state.withLock { $0.waiters.removeValue(forKey: number) }?.resume()
        }
    }
}

/// A value that one thread gives and others wait for. For threads that may block, where no task waits that could be
/// suspended.
public final class Answer<Value: Sendable>: Sendable {
    private let value = ConditionLock<Value?>(nil)

    /// An answer that has not been given.
    public init() {}

    /// Gives the value; to be called once.
    public func give(_ value: Value) {
        self.value.withLock { given in
            precondition(given == nil, "answered twice")
            given = value
        }
        self.value.broadcast()
    }

    /// Waits for the value. It blocks: never call it on a task's thread.
    public func wait() -> Value { value.wait { $0 } }
}
