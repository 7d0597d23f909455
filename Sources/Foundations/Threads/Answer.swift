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
