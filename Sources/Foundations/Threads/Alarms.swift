import Glibc

/// Calls things at their time, on one thread of its own.
///
/// Made for time limits, which are set for every piece of work and seldom reached: setting one that is later than the
/// next one due, and taking it back, wake nobody.
public final class Alarms: Sendable {
    /// Names an alarm, for taking it back.
    public struct Alarm: Hashable, Sendable {
        fileprivate let moment: ContinuousClock.Instant
        fileprivate let number: UInt64
    }

    private let queue = AlarmQueue()

    /// Starts the thread, which ends when the last reference is gone; what is set by then is not called.
    public init(name: String) {
        let queue = queue
        // Not held: nobody waits for its end.
        _ = WorkThread(name: name, stackSize: 1 << 18) { queue.run() }
    }

    deinit {
        queue.close()
    }

    /// Has `call` called at `moment`, at once where that is past. Keep it short: others wait behind it.
    public func set(at moment: ContinuousClock.Instant, _ call: @escaping @Sendable () -> Void) -> Alarm {
        queue.add(moment, call)
    }

    /// Takes an alarm back. It may have been called already, or be on the way to it.
    public func cancel(_ alarm: Alarm) {
        queue.remove(alarm)
    }
}

/// Alarms by their time: a mutex and a condition.
///
/// `@unchecked Sendable`: all that varies is touched only with `mutex` held.
private final class AlarmQueue: @unchecked Sendable {
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let changed = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var waiting: [(alarm: Alarms.Alarm, call: @Sendable () -> Void)] = []
    private var count: UInt64 = 0
    /// When the thread looks again by itself. It may be earlier than the first alarm, if that was taken back.
    private var nextLook: ContinuousClock.Instant?
    private var isClosed = false

    init() {
        pthread_mutex_init(mutex, nil)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(changed, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_cond_destroy(changed)
        pthread_mutex_destroy(mutex)
        changed.deallocate()
        mutex.deallocate()
    }

    func add(_ moment: ContinuousClock.Instant, _ call: @escaping @Sendable () -> Void) -> Alarms.Alarm {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        count += 1
        let alarm = Alarms.Alarm(moment: moment, number: count)
        // From the end: limits of one length come in the order of their ends.
        let place = waiting.lastIndex { $0.alarm.moment <= moment }.map { $0 + 1 } ?? 0
        waiting.insert((alarm, call), at: place)
        if nextLook.map({ moment < $0 }) ?? true { pthread_cond_signal(changed) }
        return alarm
    }

    func remove(_ alarm: Alarms.Alarm) {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        if let place = waiting.firstIndex(where: { $0.alarm == alarm }) { waiting.remove(at: place) }
    }

    func close() {
        pthread_mutex_lock(mutex)
        isClosed = true
        pthread_cond_signal(changed)
        pthread_mutex_unlock(mutex)
    }

    func run() {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while !isClosed {
            if let first = waiting.first, first.alarm.moment <= .now {
                waiting.removeFirst()
                pthread_mutex_unlock(mutex)
                first.call()
                pthread_mutex_lock(mutex)
                continue
            }
            sleep()
        }
    }

    private func sleep() {
        // An alarm that is added later and due sooner wakes the thread.
        nextLook = waiting.first?.alarm.moment
        guard let nextLook else {
            pthread_cond_wait(changed, mutex)
            return
        }
        let (seconds, attoseconds) = ContinuousClock.now.duration(to: nextLook).components
        var end = timespec()
        clock_gettime(CLOCK_MONOTONIC, &end)
        // An hour is as good as for ever, and cannot overflow: the thread looks again.
        end.tv_sec += Int(min(seconds, 3600))
        end.tv_nsec += Int(attoseconds / 1_000_000_000)
        if end.tv_nsec >= 1_000_000_000 {
            end.tv_sec += 1
            end.tv_nsec -= 1_000_000_000
        } else if end.tv_nsec < 0 {
            return
        }
        pthread_cond_timedwait(changed, mutex, &end)
    }
}
