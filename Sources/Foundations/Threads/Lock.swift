import Glibc

/// A value behind a mutex.
///
/// The one mutex of the project. It stands on pthread, because the thread sanitizer understands pthread's mutexes and
/// takes `Synchronization.Mutex` for a race.
///
/// `@unchecked Sendable`: the value is reached only inside ``withLock(_:)``, under the mutex.
public final class Lock<Value>: @unchecked Sendable {
    /// For ``ConditionLock``, whose condition variable gives it up while a thread waits.
    let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private var value: Value

    /// A lock that owns `value`, which nothing else may reach from now on.
    public init(_ value: sending Value) {
        mutex = .allocate(capacity: 1)
        pthread_mutex_init(mutex, nil)
        self.value = value
    }

    deinit {
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
    }

    /// Runs `body` with the value, alone. Keep it short: never wait, call C that blocks, or take another lock inside.
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

/// A value behind a mutex, and a condition variable for threads that wait until the value is as they need it.
///
/// For threads that may block, never for a task's. A change wakes nobody by itself: whoever makes one that is waited
/// for calls ``signal()`` or ``broadcast()`` after it.
///
/// `@unchecked Sendable`: pthread's condition variables are made for several threads, and the value is ``Lock``'s.
public final class ConditionLock<Value>: @unchecked Sendable {
    private let lock: Lock<Value>
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    /// A lock that owns `value`, which nothing else may reach from now on.
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

    /// Runs `body` with the value, alone. Keep it short: never wait, call C that blocks, or take another lock inside.
    public func withLock<Result, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        try lock.withLock(body)
    }

    /// Wakes one thread that waits.
    public func signal() { pthread_cond_signal(condition) }

    /// Wakes all threads that wait.
    public func broadcast() { pthread_cond_broadcast(condition) }

    /// Blocks the thread until `body` returns a result.
    /// - Parameters:
    ///   - body: called with the value, alone, at once and after each wake-up, until it returns something other than
    ///     nil.
    ///   - deadline: the time at which `body` is called again even if nobody wakes the thread; nil for never. It is
    ///     asked whenever `body` has returned nil.
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
        // An hour is as good as for ever, and cannot overflow: the value is looked at again.
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
