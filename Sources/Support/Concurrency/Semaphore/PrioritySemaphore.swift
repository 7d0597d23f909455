/// An asynchronous semaphore that grants permits in the order of requests. With several priority levels, each level
/// gets its share of the released permits, so high priorities are served quickly and none starves. Within a level,
/// flows get equal or weighted shares (``FairQueue``), and a reserve of permits is kept for flows below their share, so
/// that they need not wait until others release theirs.
public final class PrioritySemaphore: Sendable {
    private typealias Waiter = CheckedContinuation<Void, any Error>

    private struct State {
        var free: Int
        /// The number of permits that only flows below their share may acquire, if there are several flows.
        let fullReserve: Int
        var queue: SemaphoreWaitQueue<Waiter>
        var nextNumber: UInt64 = 0
        /// Holders that need more permits, in order of arrival.
        var growing: Deque<Growth> = Deque()
        /// The waiters by number. A waiter that was cancelled is removed.
        var growthWaiters: [UInt64: Waiter] = [:]
        /// The holder that has acquired more permits than were free.
        var overdrawn: ObjectIdentifier?

        mutating func newNumber() -> UInt64 {
            nextNumber += 1
            return nextNumber
        }

        private var reserve: Int { queue.hasSeveralFlows ? fullReserve : 0 }

        /// Takes a permit if one is free.
        mutating func takeFree(_ urgency: WorkPriority?) -> Bool {
            guard free > reserve || (free > 0 && queue.isBelowShare(urgency)) else { return false }
            queue.serve(urgency)
            free -= 1
            return true
        }

        /// Grants additional permits to a holder, even if they are not free. Only one holder at a time may overdraw.
        mutating func grow(_ holder: ObjectIdentifier, by count: Int) -> Bool {
            guard free >= 0 || overdrawn == holder else { return false }
            free -= count
            if free < 0 { overdrawn = holder }
            return true
        }

        /// Grants released permits. Holders that need more come first, because they hold their permits while they wait.
        mutating func handOut() -> [Waiter] {
            if free >= 0 { overdrawn = nil }
            var waiters: [Waiter] = []
            while free >= 0, let growth = growing.popFirst() {
                guard let waiter = growthWaiters.removeValue(forKey: growth.number) else { continue }
                _ = grow(growth.holder, by: growth.count)
                waiters.append(waiter)
            }
            while free > reserve, let waiter = queue.popNext() {
                free -= 1
                waiters.append(waiter)
            }
            return waiters
        }
    }

    private struct Growth {
        let number: UInt64
        let holder: ObjectIdentifier
        let count: Int
    }

    /// The shares of the priority levels, highest priority first.
    public let shares: [Int]
    private let state: Lock<State>

    /// Creates a semaphore.
    /// - Parameters:
    ///   - count: The number of permits.
    ///   - shares: The shares of the priority levels, highest priority first.
    ///   - reserve: The number of permits that only flows below their share may acquire, if there are several flows;
    ///     less than `count`.
    public init(_ count: Int, shares: [Int] = [1], reserve: Int = 0) {
        precondition(count > reserve, "a semaphore needs at least one permit for all")
        self.shares = shares
        state = Lock(State(free: count, fullReserve: reserve, queue: SemaphoreWaitQueue(shares: shares)))
    }

    /// Waits for a permit. Release it with ``release(_:)``.
    /// - Parameter urgency: The priority of the waiter. Increases take effect while it waits. The default is the
    ///   lowest.
    /// - Throws: `CancellationError` if the task is cancelled first.
    public func acquire(_ urgency: WorkPriority? = nil) async throws {
        let number: UInt64? = state.withLock { $0.takeFree(urgency) ? nil : $0.newNumber() }
        guard let number else { return }
        let listener = urgency?.listen { level in self.state.withLock { $0.queue.escalate(number, to: level) } }
        defer { listener?.end() }
        try await wait(number) { state, waiter in
            if state.takeFree(urgency) { return true }
            state.queue.append(waiter, number: number, level: .max, flow: urgency?.flow ?? Flow())
            return false
        } onQueued: {
            // Read the level only now, so that no increase in between is missed.
            if let level = urgency?.level { self.state.withLock { $0.queue.escalate(number, to: level) } }
        }
    }

    /// Acquires a permit if one is free. Release it with ``release(_:)``.
    /// - Returns: False if there is none.
    public func tryAcquire(_ urgency: WorkPriority? = nil) -> Bool { state.withLock { $0.takeFree(urgency) } }

    /// Waits for a permit until a deadline. Release it with ``release(_:)``.
    /// - Parameter deadline: The time at which waiting ends; nil for no limit.
    /// - Returns: False if the deadline has passed first.
    /// - Throws: `CancellationError` if the task is cancelled first.
    public func acquire(_ urgency: WorkPriority? = nil, until deadline: ContinuousClock.Instant?) async throws -> Bool {
        guard let deadline else {
            try await acquire(urgency)
            return true
        }
        if tryAcquire(urgency) { return true }
        let isAcquired = await withTaskGroup(of: Bool.self) { group in
            // The only error of either task is that it was cancelled.
            group.addTask { (try? await self.acquire(urgency)) != nil }
            group.addTask {
                await Task.sleepUnlessCancelled(until: deadline)
                return false
            }
            // A permit that was acquired at the deadline is kept.
            return await group.reduce(false) { isAcquired, result in
                group.cancelAll()
                return isAcquired || result
            }
        }
        if !isAcquired { try Task.checkCancellation() }
        return isAcquired
    }

    /// Waits for additional permits for work that is larger than the permits that its holder has.
    ///
    /// Only one holder at a time may acquire permits that are not free, so holders never deadlock waiting for each
    /// other. The number of permits in use exceeds the count of ``init(_:shares:)`` by at most what one holder
    /// acquires, and no other task gets a permit until the excess has been released.
    /// - Parameter holder: The object that identifies the holder. It outlives its permits.
    /// - Throws: `CancellationError` if the task is cancelled first.
    public func grow(_ holder: AnyObject, by count: Int) async throws {
        let holder = ObjectIdentifier(holder)
        let number: UInt64? = state.withLock { $0.grow(holder, by: count) ? nil : $0.newNumber() }
        guard let number else { return }
        try await wait(number) { state, waiter in
            if state.grow(holder, by: count) { return true }
            state.growing.append(Growth(number: number, holder: holder, count: count))
            state.growthWaiters[number] = waiter
            return false
        }
    }

    /// Waits until this number is served or the task is cancelled.
    /// - Parameters:
    ///   - join: A closure that acquires free permits or queues the waiter. It returns true if the waiter was served.
    ///   - onQueued: A closure that is called once the waiter is queued.
    private func wait(
        _ number: UInt64, _ join: (inout State, Waiter) -> Bool, onQueued: () -> Void = {}
    ) async throws {
        try Task.checkCancellation()
        try await withCancellableThrowingContinuation { continuation in
            let isServed = state.withLock { join(&$0, continuation) }
            if isServed { continuation.resume() } else { onQueued() }
        } onCancel: {
            let waiter = state.withLock { $0.queue.remove(number) ?? $0.growthWaiters.removeValue(forKey: number) }
            waiter?.resume(throwing: CancellationError())
        }
    }

    /// Acquires additional permits immediately, whether or not they are free. No other task gets a permit until the
    /// excess has been released.
    public func forceAcquire(_ count: Int) { state.withLock { $0.free -= count } }

    /// Releases permits and resumes the next waiters.
    /// - Parameter holder: The holder that has grown, if these are all of its permits.
    public func release(_ count: Int = 1, of holder: AnyObject? = nil) {
        let waiters = state.withLock { state in
            state.free += count
            if let holder, state.overdrawn == ObjectIdentifier(holder) { state.overdrawn = nil }
            return state.handOut()
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Does not count a permit that was released at once towards the share of its flow.
    public func refund(_ urgency: WorkPriority) {
        state.withLock { $0.queue.refund(urgency) }
    }

    /// The number of waiting tasks.
    public var waiting: Int { state.withLock { $0.queue.count + $0.growthWaiters.count } }
}

/// The waiters for a permit, in one fair queue per priority level. A pure value.
struct SemaphoreWaitQueue<Waiter> {
    private struct Entry {
        var level: Int
        let flow: Flow
        let waiter: Waiter
    }

    private var entries: [UInt64: Entry] = [:]
    /// Waiter numbers in order of arrival. A number that was removed or moved to another queue is skipped.
    private var queues: [FairQueue<UInt64>]
    private var lengths: [Int]
    private var scheduler: StrideScheduler

    init(shares: [Int]) {
        queues = shares.map { _ in FairQueue() }
        lengths = shares.map { _ in 0 }
        scheduler = StrideScheduler(shares: shares)
    }

    var count: Int { entries.count }

    /// True if several flows of a level have waited.
    var hasSeveralFlows: Bool { queues.contains(where: \.hasSeveralFlows) }

    /// Appends a waiter to its queue.
    mutating func append(_ waiter: Waiter, number: UInt64, level: Int, flow: Flow = Flow()) {
        let level = clamped(level)
        entries[number] = Entry(level: level, flow: flow, waiter: waiter)
        enqueue(number, level, flow)
    }

    /// Moves a waiter to the end of a higher-priority queue.
    mutating func escalate(_ number: UInt64, to level: Int) {
        let level = max(level, 0)
        guard let entry = entries[number], level < entry.level else { return }
        lengths[entry.level] -= 1
        entries[number]?.level = level
        enqueue(number, level, entry.flow)
    }

    private mutating func enqueue(_ number: UInt64, _ level: Int, _ flow: Flow) {
        if lengths[level] == 0 { scheduler.enter(level) }
        lengths[level] += 1
        queues[level].append(number, to: flow)
    }

    /// Does not count a permit towards the share of a flow.
    mutating func refund(_ urgency: WorkPriority) { queues[clamped(urgency.level)].refund(urgency.flow.name) }

    /// True if the next permit may go to a flow out of turn.
    func isBelowShare(_ urgency: WorkPriority?) -> Bool {
        queues[clamped(urgency?.level ?? .max)].isBelowShare(urgency?.flow ?? Flow())
    }

    /// Counts a permit that is granted without waiting.
    mutating func serve(_ urgency: WorkPriority?) {
        queues[clamped(urgency?.level ?? .max)].serve(urgency?.flow ?? Flow())
    }

    private func clamped(_ level: Int) -> Int { min(max(level, 0), queues.count - 1) }

    /// Removes a waiter; nil if it is not queued.
    mutating func remove(_ number: UInt64) -> Waiter? {
        guard let entry = entries.removeValue(forKey: number) else { return nil }
        lengths[entry.level] -= 1
        return entry.waiter
    }

    /// Removes and returns the next waiter.
    mutating func popNext() -> Waiter? {
        guard let level = scheduler.next(where: { lengths[$0] > 0 }) else { return nil }
        while let next = queues[level].popFirst() {
            if entries[next.element]?.level == level { return remove(next.element) }
        }
        return nil
    }
}

/// A permit of a ``PrioritySemaphore`` that can be released and acquired repeatedly. It is released at the latest when
/// the last reference is released, so all users of the permitted work share it.
///
/// If the work turns out to be larger than one permit allows for, the permit acquires extra permits.
///
/// Releasing a permit that is not held has no effect, so one `defer` is correct on every exit.
public final class SemaphorePermit: Sendable {
    private struct State {
        var isHeld = false
        /// The number of extra permits.
        var more = 0
    }

    private let semaphore: PrioritySemaphore
    private let state = Lock(State())

    /// Creates a permit that is not held yet.
    public init(of semaphore: PrioritySemaphore) { self.semaphore = semaphore }

    deinit { release() }

    /// The number of permits held.
    public var permits: Int { state.withLock { $0.more + ($0.isHeld ? 1 : 0) } }

    /// Waits for the permit, unless it is held.
    /// - Parameter urgency: The priority of the waiter.
    /// - Throws: `CancellationError` if the task is cancelled first.
    public func acquire(_ urgency: WorkPriority? = nil) async throws {
        guard !state.withLock({ $0.isHeld }) else { return }
        try await semaphore.acquire(urgency)
        state.withLock { $0.isHeld = true }
    }

    /// Acquires the permit if it is held or one is free.
    /// - Returns: True if the permit is held.
    public func tryAcquire(_ urgency: WorkPriority? = nil) -> Bool {
        state.withLock { state in
            if !state.isHeld { state.isHeld = semaphore.tryAcquire(urgency) }
            return state.isHeld
        }
    }

    /// Sets the number of extra permits without waiting. Has no effect if the permit is not held.
    public func setExtraPermits(_ count: Int) {
        let change = state.withLock { state in
            guard state.isHeld else { return 0 }
            defer { state.more = count }
            return count - state.more
        }
        if change > 0 { semaphore.forceAcquire(change) }
        if change < 0 { semaphore.release(-change) }
    }

    /// Waits until at least `count` extra permits are held. Never reduces their number. Has no effect if the permit is
    /// not held.
    /// - Throws: `CancellationError` if the task is cancelled first.
    public func grow(more count: Int) async throws {
        let change = state.withLock { $0.isHeld ? max(0, count - $0.more) : 0 }
        guard change > 0 else { return }
        try await semaphore.grow(self, by: change)
        let isHeld = state.withLock { state in
            if state.isHeld { state.more += change }
            return state.isHeld
        }
        if !isHeld { semaphore.release(change) }
    }

    /// Releases the permit but not its extra permits, because the large work is still in memory.
    public func releaseOwn() {
        let wasHeld = state.withLock { state in
            defer { state.isHeld = false }
            return state.isHeld
        }
        if wasHeld { semaphore.release() }
    }

    /// Releases all permits.
    public func release() {
        let held = state.withLock { state in
            defer { state = State() }
            return state.more + (state.isHeld ? 1 : 0)
        }
        if held > 0 { semaphore.release(held, of: self) }
    }
}

/// A stride scheduler: weighted fair queueing among several queues (Waldspurger and Weihl, "Stride Scheduling", MIT
/// 1995).
///
/// While all queues have waiters, each is served in proportion to its share, so none starves. A queue accumulates no
/// credit while it is empty.
struct StrideScheduler {
    private let strides: [Double]
    private var passes: [Double]
    private var now = 0.0

    /// Creates a scheduler.
    /// - Parameter shares: The share of each queue, above 0.
    init(shares: [Int]) {
        precondition(!shares.isEmpty && shares.allSatisfy { $0 > 0 }, "each queue needs a share")
        strides = shares.map { 1 / Double($0) }
        passes = shares.map { _ in 0 }
    }

    /// Records that an empty queue has a waiter now.
    mutating func enter(_ queue: Int) { passes[queue] = max(passes[queue], now) }

    /// Returns the next queue among those with waiters; the first one if several are equal.
    mutating func next(where waits: (Int) -> Bool) -> Int? {
        guard let queue = passes.indices.filter(waits).min(by: { passes[$0] < passes[$1] }) else { return nil }
        now = passes[queue]
        passes[queue] += strides[queue]
        return queue
    }
}

/// The priority of a piece of work. It may be raised while the work waits, which moves the work forward in its queue.
///
/// All waiters for the same work share it. The highest priority among them counts.
public final class WorkPriority: Sendable {
    private struct State {
        var level: Int
        var listeners: [UInt64: @Sendable (Int) -> Void] = [:]
        var numbers: UInt64 = 0
    }

    /// The flow that the work belongs to.
    public let flow: Flow
    private let state: Lock<State>

    /// Creates a priority.
    /// - Parameters:
    ///   - level: The level; 0 is the highest priority.
    ///   - flow: The flow that the work belongs to.
    public init(level: Int, flow: Flow = Flow()) {
        self.flow = flow
        state = Lock(State(level: level))
    }

    /// The level; 0 is the highest priority.
    public var level: Int { state.withLock { $0.level } }

    /// Raises the priority to `level`, unless it is already as high.
    public func escalate(to level: Int) {
        let listeners: [@Sendable (Int) -> Void] = state.withLock { state in
            guard level < state.level else { return [] }
            state.level = level
            return Array(state.listeners.values)
        }
        for listener in listeners { listener(level) }
    }

    /// Calls `body` with each new level until the listener is removed. Concurrent changes may be delivered in any
    /// order.
    public func listen(_ body: @escaping @Sendable (Int) -> Void) -> Listener {
        state.withLock { state in
            state.numbers += 1
            state.listeners[state.numbers] = body
            return Listener(urgency: self, number: state.numbers)
        }
    }

    /// A registered listener.
    public struct Listener: Sendable {
        fileprivate let urgency: WorkPriority
        fileprivate let number: UInt64

        /// Removes the listener.
        public func end() { urgency.state.withLock { _ = $0.listeners.removeValue(forKey: number) } }
    }
}
