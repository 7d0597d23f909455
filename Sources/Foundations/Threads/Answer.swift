import Glibc

/// A value that one thread gives and others wait for. For threads that may block, where no task waits that could be
/// suspended.
///
/// `@unchecked Sendable`: `value` is touched only with `mutex` held.
public final class Answer<Value: Sendable>: @unchecked Sendable {
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let given = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var value: Value?

    /// An answer that has not been given.
    public init() {
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(given, nil)
    }

    deinit {
        pthread_cond_destroy(given)
        pthread_mutex_destroy(mutex)
        given.deallocate()
        mutex.deallocate()
    }

    /// Gives the value; to be called once.
    public func give(_ value: Value) {
        pthread_mutex_lock(mutex)
        precondition(self.value == nil, "answered twice")
        self.value = value
        pthread_cond_broadcast(given)
        pthread_mutex_unlock(mutex)
    }

    /// Waits for the value. It blocks: never call it on a task's thread.
    public func wait() -> Value {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while true {
            if let value { return value }
            pthread_cond_wait(given, mutex)
        }
    }
}
