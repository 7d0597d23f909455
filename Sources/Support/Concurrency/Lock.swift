import Glibc

/// A value protected by a mutex.
///
/// All mutual exclusion uses this type. It is based on pthread because the thread sanitizer understands pthread mutexes
/// and reports `Synchronization.Mutex` as a race.
///
/// `@unchecked Sendable`: the value is accessed only inside ``withLock(_:)``, under the mutex.
public final class Lock<Value>: @unchecked Sendable {
    /// The mutex. A ``ConditionLock`` needs it: its condition variable releases the mutex while a thread waits.
    let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private var value: Value

    /// Creates a lock that owns `value`. Nothing else may access the value afterwards.
    public init(_ value: sending Value) {
        mutex = .allocate(capacity: 1)
        pthread_mutex_init(mutex, nil)
        self.value = value
    }

    deinit {
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
    }

    /// Runs `body` with exclusive access to the value. Keep it short: do not wait, call blocking C functions, or
    /// acquire another lock inside.
    @inlinable
    public func withLock<Result, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        lock()
        defer { unlock() }
        return try body(&guarded)
    }

    @usableFromInline func lock() { pthread_mutex_lock(mutex) }
    @usableFromInline func unlock() { pthread_mutex_unlock(mutex) }
    @usableFromInline var guarded: Value {
        get { value }
        _modify { yield &value }
    }
}

/// A value protected by a mutex, with a condition variable for threads that wait for a state of the value.
///
/// For threads that may block, never for a task's thread. Changes do not wake waiters: call ``signal()`` or
/// ``broadcast()`` after a change that threads wait for.
///
/// `@unchecked Sendable`: pthread condition variables may be used by several threads, and the value is protected by
/// ``Lock``.
public final class ConditionLock<Value>: @unchecked Sendable {
    private let lock: Lock<Value>
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    /// Creates a lock that owns `value`. Nothing else may access the value afterwards.
    public init(_ value: sending Value) {
        lock = Lock(value)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(condition, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_cond_destroy(condition)
        condition.deallocate()
    }

    /// Runs `body` with exclusive access to the value. Keep it short: do not wait, call blocking C functions, or
    /// acquire another lock inside.
    public func withLock<Result, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        try lock.withLock(body)
    }

    /// Wakes one waiting thread.
    public func signal() { pthread_cond_signal(condition) }

    /// Wakes all waiting threads.
    public func broadcast() { pthread_cond_broadcast(condition) }

    /// Blocks the thread until `body` returns a result.
    /// - Parameters:
    ///   - body: A closure that is called with exclusive access to the value, at once and after each wakeup, until it
    ///     returns something other than nil.
    ///   - deadline: The time at which `body` is called again even without a wakeup; nil for never. It is evaluated
    ///     each time `body` has returned nil.
    public func wait<Result>(
        for body: (inout Value) -> Result?, recheckingAt deadline: (Value) -> ContinuousClock.Instant? = { _ in nil }
    ) -> Result {
        lock.lock()
        defer { lock.unlock() }
        while true {
            if let result = body(&lock.guarded) { return result }
            if let deadline = deadline(lock.guarded) { sleep(until: deadline) } else { sleep() }
        }
    }

    private func sleep() { pthread_cond_wait(condition, lock.mutex) }

    private func sleep(until deadline: ContinuousClock.Instant) {
        // An hour avoids overflow, and the value is checked again afterwards.
        let left = min(max(.zero, ContinuousClock.now.duration(to: deadline)), .seconds(3600))
        let (seconds, attoseconds) = left.components
        var end = timespec()
        clock_gettime(CLOCK_MONOTONIC, &end)
        let nanoseconds = end.tv_nsec + Int(attoseconds / 1_000_000_000)
        end.tv_sec += Int(seconds) + nanoseconds / 1_000_000_000
        end.tv_nsec = nanoseconds % 1_000_000_000
        pthread_cond_timedwait(condition, lock.mutex, &end)
    }
}
