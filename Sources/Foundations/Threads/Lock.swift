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
