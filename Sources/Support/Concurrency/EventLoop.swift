import CLinux
import Glibc

/// A thread with an epoll set that is also a serial executor. An actor that uses it as its executor runs only on this
/// thread. So a C library that must be called from one thread is, and the compiler checks the isolation.
///
/// `watch`, `schedule` and their counterparts must be called on the loop: inside such an actor, or in a callback of the
/// loop (use `assumeIsolated` there).
///
/// `@unchecked Sendable`: `inbox` is a lock; everything else is accessed only on the loop's thread.
public final class EventLoop: SerialExecutor, @unchecked Sendable {
    /// The readiness of a watched descriptor.
    public struct Readiness: OptionSet, Sendable {
        /// EPOLL bits.
        public let rawValue: UInt32
        /// Creates a readiness from EPOLL bits.
        public init(rawValue: UInt32) { self.rawValue = rawValue }
        /// A read would not block: data is available, or the peer has closed.
        public static let readable = Readiness(rawValue: EPOLLIN.rawValue)
        /// A write would not block.
        public static let writable = Readiness(rawValue: EPOLLOUT.rawValue)
        /// An error or a hang-up. Always reported, never requested.
        public static let failed = Readiness(rawValue: EPOLLERR.rawValue | EPOLLHUP.rawValue)
    }

    /// A handle that cancels a scheduled call.
    public struct Timer: Hashable, Sendable {
        fileprivate let deadline: ContinuousClock.Instant
        fileprivate let number: UInt64
    }

    private struct Inbox {
        var jobs: [UnownedJob] = []
        var calls: [@Sendable () -> Void] = []
        var stopping = false
        var awake = false
    }

    private let epoll: Int32
    private let wakeup: Int32
    private let inbox = Lock(Inbox())
    private let thread = Lock<NamedThread?>(nil)
    private let ready = Lock<pthread_t?>(nil)

    private var handlers: [Int32: (Readiness) -> Void] = [:]
    private var timers: [(timer: Timer, call: () -> Void)] = []
    private var timerCount: UInt64 = 0

    /// Starts the loop's thread. Call ``stop()`` before releasing the last reference.
    public init(name: String) {
        epoll = epoll_create1(Int32(EPOLL_CLOEXEC))
        wakeup = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
        precondition(epoll >= 0 && wakeup >= 0, "cannot create an epoll set or eventfd: errno \(errno)")
        var event = epoll_event(events: Readiness.readable.rawValue, data: epoll_data_t(fd: wakeup))
        epoll_ctl(epoll, EPOLL_CTL_ADD, wakeup, &event)
        let started = NamedThread(name: name) { self.run() }
        thread.withLock { $0 = started }
    }

    /// Stops the thread after the enqueued jobs, releases all watches and timers, and waits. Blocks: never call it on
    /// the loop or on a task's thread.
    public func stop() {
        inbox.withLock { $0.stopping = true }
        wake()
        thread.withLock { $0 }?.join()
    }

    deinit {
        close(wakeup)
        close(epoll)
    }

    // MARK: Executor

    /// Enqueues a job of an actor that runs on this loop.
    public func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let mustWake = inbox.withLock { inbox in
            inbox.jobs.append(job)
            defer { inbox.awake = true }
            return !inbox.awake
        }
        if mustWake { wake() }
    }

    /// Schedules `call` on the loop, from any thread, in call order. Once ``stop()`` has begun, `call` is released
    /// without being called.
    public func perform(_ call: @escaping @Sendable () -> Void) {
        let mustWake = inbox.withLock { inbox in
            // Do not store the closure: it usually references the loop, which would never be released.
            if inbox.stopping { return false }
            inbox.calls.append(call)
            defer { inbox.awake = true }
            return !inbox.awake
        }
        if mustWake { wake() }
    }

    /// True if the caller is on the loop's thread.
    public var isCurrent: Bool {
        guard let own = ready.withLock({ $0 }) else { return false }
        return pthread_equal(own, pthread_self()) != 0
    }

    /// Makes `assumeIsolated` work in C callbacks on the loop's thread.
    public func checkIsolated() {
        precondition(isCurrent, "not on the event loop's thread")
    }

    // MARK: On the loop

    /// Calls `handler` whenever `descriptor` is ready (level-triggered). A second call for the same descriptor replaces
    /// interest and handler.
    public func watch(_ descriptor: Int32, for interest: Readiness, _ handler: @escaping (Readiness) -> Void) {
        checkIsolated()
        var event = epoll_event(events: interest.rawValue, data: epoll_data_t(fd: descriptor))
        let known = handlers.updateValue(handler, forKey: descriptor) != nil
        epoll_ctl(epoll, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, descriptor, &event)
    }

    /// Stops watching a descriptor. Call it before the descriptor is closed.
    public func unwatch(_ descriptor: Int32) {
        checkIsolated()
        guard handlers.removeValue(forKey: descriptor) != nil else { return }
        epoll_ctl(epoll, EPOLL_CTL_DEL, descriptor, nil)
    }

    /// Calls `call` once after `delay`.
    @discardableResult
    public func schedule(after delay: Duration, _ call: @escaping () -> Void) -> Timer {
        checkIsolated()
        timerCount += 1
        let timer = Timer(deadline: .now + delay, number: timerCount)
        let place = timers.firstIndex { $0.timer.deadline > timer.deadline } ?? timers.endIndex
        timers.insert((timer, call), at: place)
        return timer
    }

    /// Cancels a scheduled call. Has no effect if the call was made already.
    public func cancel(_ timer: Timer) {
        checkIsolated()
        timers.removeAll { $0.timer == timer }
    }

    // MARK: The thread

    private func wake() {
        var one: UInt64 = 1
        _ = write(wakeup, &one, 8)
    }

    private func run() {
        ready.withLock { $0 = pthread_self() }
        let capacity = 64
        let events = UnsafeMutablePointer<epoll_event>.allocate(capacity: capacity)
        defer { events.deallocate() }
        while runJobs() {
            runTimers()
            let count = epoll_wait(epoll, events, Int32(capacity), untilNextTimer())
            for index in 0..<max(0, Int(count)) {
                let descriptor = events[index].data.fd
                if descriptor == wakeup {
                    var count: UInt64 = 0
                    _ = read(wakeup, &count, 8)
                } else if let handler = handlers[descriptor] {
                    handler(Readiness(rawValue: events[index].events))
                }
            }
        }
        // These closures usually reference owners of the loop.
        handlers = [:]
        timers = []
    }

    /// Runs the enqueued jobs and calls. False if the loop is to stop.
    private func runJobs() -> Bool {
        while true {
            let (jobs, calls, stopping) = inbox.withLock { inbox in
                defer {
                    // Stay awake while jobs run, so that jobs enqueued by them need no system call.
                    inbox.awake = !inbox.jobs.isEmpty || !inbox.calls.isEmpty
                    inbox.jobs = []
                    inbox.calls = []
                }
                return (inbox.jobs, inbox.calls, inbox.stopping)
            }
            if jobs.isEmpty && calls.isEmpty { return !stopping }
            for job in jobs { job.runSynchronously(on: asUnownedSerialExecutor()) }
            for call in calls { call() }
        }
    }

    private func runTimers() {
        while let first = timers.first, first.timer.deadline <= .now {
            timers.removeFirst()
            first.call()
        }
    }

    /// The timeout for `epoll_wait` in milliseconds, rounded up so that a timer is due when it returns; -1 for none.
    private func untilNextTimer() -> Int32 {
        if inbox.withLock({ !$0.jobs.isEmpty || !$0.calls.isEmpty }) { return 0 }
        guard let first = timers.first else { return -1 }
        let left = ContinuousClock.now.duration(to: first.timer.deadline)
        let (seconds, attoseconds) = left.components
        let milliseconds = seconds * 1000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
        return Int32(clamping: max(0, milliseconds))
    }
}
