/// A number of places that tasks take in the order they ask: an asynchronous semaphore. With several levels of urgency each has its
/// share of the places that become free, so that the urgent ones are quick and none starves.
public final class Slots: Sendable {
    private typealias Waiter = CheckedContinuation<Void, any Error>

    private struct State {
        var free: Int
        var queue: SlotQueue<Waiter>
        var nextNumber: UInt64 = 0
        /// Holders that need more places, as they came.
        var growing: Fifo<Growth> = Fifo()
        /// By their numbers; one that gave up is not here any more.
        var growthWaiters: [UInt64: Waiter] = [:]
        /// The holder that has taken places which are not free.
        var overdrawn: ObjectIdentifier?

        mutating func newNumber() -> UInt64 {
            nextNumber += 1
            return nextNumber
        }

        /// Takes places for a holder that has some already, also where they are not free, but for one holder at a time.
        mutating func grow(_ holder: ObjectIdentifier, by count: Int) -> Bool {
            guard free >= 0 || overdrawn == holder else { return false }
            free -= count
            if free < 0 { overdrawn = holder }
            return true
        }

        /// Hands out what has become free: first to holders that need more, who hold what they have while they wait.
        mutating func handOut() -> [Waiter] {
            if free >= 0 { overdrawn = nil }
            var waiters: [Waiter] = []
            while free >= 0, let growth = growing.popFirst() {
                guard let waiter = growthWaiters.removeValue(forKey: growth.number) else { continue }
                _ = grow(growth.holder, by: growth.count)
                waiters.append(waiter)
            }
            while free > 0, let waiter = queue.popNext() {
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

    /// Of each level of urgency, the most urgent first.
    public let shares: [Int]
    private let state: Lock<State>

    /// - Parameters:
    ///   - count: how many tasks may hold a place at once.
    ///   - shares: of each level of urgency, the most urgent first.
    public init(_ count: Int, shares: [Int] = [1]) {
        precondition(count > 0, "there must be a place")
        self.shares = shares
        state = Lock(State(free: count, queue: SlotQueue(shares: shares)))
    }

    /// Waits for a place. Whoever got one gives it back with ``release(_:)``.
    /// - Parameter urgency: of whoever waits; it is followed while it rises. Without one it is the least.
    /// - Throws: `CancellationError` when the task is cancelled first.
    public func acquire(_ urgency: Urgency? = nil) async throws {
        let number: UInt64? = state.withLock { state in
            if state.free > 0 {
                state.free -= 1
                return nil
            }
            return state.newNumber()
        }
        guard let number else { return }
        let listener = urgency?.listen { level in self.state.withLock { $0.queue.raise(number, to: level) } }
        defer { listener?.end() }
        try await wait(number) { state, waiter in
            if state.free > 0 {
                state.free -= 1
                return true
            }
            state.queue.append(waiter, number: number, level: .max)
            return false
        } onQueued: {
            // Asked for only now, so that no rise between the two is missed.
            if let level = urgency?.level { self.state.withLock { $0.queue.raise(number, to: level) } }
        }
    }

    /// Waits for more places for what is larger than the places that its holder has.
    ///
    /// One holder at a time takes places that are not free, so holders that wait for more never wait for each other:
    /// the places taken exceed ``init(_:shares:)``'s count by what one holder takes at the most, and nobody else gets
    /// any until they have been given back.
    /// - Parameter holder: by whose identity the one is known; it outlives its places.
    /// - Throws: `CancellationError` when the task is cancelled first.
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
    ///   - join: takes what is free, or puts the waiter into a queue; it says whether it was served.
    ///   - onQueued: called once the waiter stands in its queue.
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

    /// Takes more places for what has turned out to be larger than one, at once, whether or not they are free: nobody gets one until as many
    /// have been given back.
    public func take(_ count: Int) { state.withLock { $0.free -= count } }

    /// Gives places back, to those whose turn it is.
    /// - Parameter holder: one that has grown, if these are all of its places.
    public func release(_ count: Int = 1, of holder: AnyObject? = nil) {
        let waiters = state.withLock { state in
            state.free += count
            if let holder, state.overdrawn == ObjectIdentifier(holder) { state.overdrawn = nil }
            return state.handOut()
        }
        for waiter in waiters { waiter.resume() }
    }

    /// How many tasks wait.
    public var waiting: Int { state.withLock { $0.queue.count + $0.growthWaiters.count } }
}

/// Who waits for a place: one queue for each level of urgency. A pure value.
struct SlotQueue<Waiter> {
    private struct Entry {
        var level: Int
        let waiter: Waiter
    }

    private var entries: [UInt64: Entry] = [:]
    /// Numbers as they came. One that was taken out, or stands in another queue by now, is passed over.
    private var queues: [Fifo<UInt64>]
    private var lengths: [Int]
    private var turns: Turns

    init(shares: [Int]) {
        queues = shares.map { _ in Fifo() }
        lengths = shares.map { _ in 0 }
        turns = Turns(shares: shares)
    }

    var count: Int { entries.count }

    /// Puts a waiter at the end of its queue.
    mutating func append(_ waiter: Waiter, number: UInt64, level: Int) {
        let level = min(max(level, 0), queues.count - 1)
        entries[number] = Entry(level: level, waiter: waiter)
        enqueue(number, level)
    }

    /// Moves a waiter to the end of a more urgent queue.
    mutating func raise(_ number: UInt64, to level: Int) {
        let level = max(level, 0)
        guard let old = entries[number]?.level, level < old else { return }
        lengths[old] -= 1
        entries[number]?.level = level
        enqueue(number, level)
    }

    private mutating func enqueue(_ number: UInt64, _ level: Int) {
        if lengths[level] == 0 { turns.enter(level) }
        lengths[level] += 1
        queues[level].append(number)
    }

    /// Takes a waiter out; nil when it is not there.
    mutating func remove(_ number: UInt64) -> Waiter? {
        guard let entry = entries.removeValue(forKey: number) else { return nil }
        lengths[entry.level] -= 1
        return entry.waiter
    }

    /// Takes out whose turn it is.
    mutating func popNext() -> Waiter? {
        guard let level = turns.next(where: { lengths[$0] > 0 }) else { return nil }
        while let number = queues[level].popFirst() {
            if entries[number]?.level == level { return remove(number) }
        }
        return nil
    }
}

/// A place of ``Slots`` that is held, given back while there is no need of it, and taken again. It is given back at the latest when
/// nobody has it any more, so those who share what it stands for share it.
///
/// What it stands for may turn out to be larger than one place is meant for: then it takes more beside its own.
///
/// To give back what is not held does nothing, so that one `defer` is right on every way out.
public final class Place: Sendable {
    private struct State {
        var isHeld = false
        /// Places beside its own.
        var more = 0
    }

    private let slots: Slots
    private let state = Lock(State())

    /// A place that is not held yet.
    public init(of slots: Slots) { self.slots = slots }

    deinit { release() }

    /// The number of places that are held.
    public var places: Int { state.withLock { $0.more + ($0.isHeld ? 1 : 0) } }

    /// Waits for a place, unless one is held.
    /// - Parameter urgency: of whoever waits.
    /// - Throws: `CancellationError` when the task is cancelled first.
    public func acquire(_ urgency: Urgency? = nil) async throws {
        guard !state.withLock({ $0.isHeld }) else { return }
        try await slots.acquire(urgency)
        state.withLock { $0.isHeld = true }
    }

    /// Sets how many places it takes beside its own, without waiting. One that is not held takes none.
    public func take(more count: Int) {
        let change = state.withLock { state in
            guard state.isHeld else { return 0 }
            defer { state.more = count }
            return count - state.more
        }
        if change > 0 { slots.take(change) }
        if change < 0 { slots.release(-change) }
    }

    /// Waits until it has at least so many places beside its own; it never has fewer than before. One that is not held
    /// takes none.
    /// - Throws: `CancellationError` when the task is cancelled first.
    public func grow(more count: Int) async throws {
        let change = state.withLock { $0.isHeld ? max(0, count - $0.more) : 0 }
        guard change > 0 else { return }
        try await slots.grow(self, by: change)
        let isHeld = state.withLock { state in
            if state.isHeld { state.more += change }
            return state.isHeld
        }
        if !isHeld { slots.release(change) }
    }

    /// Gives its own place back and keeps those beside it: what is large still is.
    public func releaseOwn() {
        let wasHeld = state.withLock { state in
            defer { state.isHeld = false }
            return state.isHeld
        }
        if wasHeld { slots.release() }
    }

    /// Gives back all that is held.
    public func release() {
        let held = state.withLock { state in
            defer { state = State() }
            return state.more + (state.isHeld ? 1 : 0)
        }
        if held > 0 { slots.release(held, of: self) }
    }
}

/// Whose turn it is among several queues, each of which has a share: weighted fair queueing by strides (Waldspurger and Weihl,
/// "Stride Scheduling", MIT 1995).
///
/// While all queues have somebody waiting, each is served in proportion to its share, so none starves; a queue that was empty
/// for a while has saved nothing up.
struct Turns {
    private let strides: [Double]
    private var passes: [Double]
    private var now = 0.0

    /// - Parameter shares: of each queue, above 0.
    init(shares: [Int]) {
        precondition(!shares.isEmpty && shares.allSatisfy { $0 > 0 }, "each queue needs a share")
        strides = shares.map { 1 / Double($0) }
        passes = shares.map { _ in 0 }
    }

    /// A queue that was empty has somebody waiting.
    mutating func enter(_ queue: Int) { passes[queue] = max(passes[queue], now) }

    /// The next of those queues in which somebody waits; of equals the first.
    mutating func next(where waits: (Int) -> Bool) -> Int? {
        guard let queue = passes.indices.filter(waits).min(by: { passes[$0] < passes[$1] }) else { return nil }
        now = passes[queue]
        passes[queue] += strides[queue]
        return queue
    }
}

/// How urgent a piece of work is. It may become more urgent while it waits, and moves up in whatever queue it stands then.
///
/// Shared by all who wait for the same work: the most urgent of them sets it.
public final class Urgency: Sendable {
    private struct State {
        var level: Int
        var listeners: [UInt64: @Sendable (Int) -> Void] = [:]
        var numbers: UInt64 = 0
    }

    private let state: Lock<State>

    /// - Parameter level: 0 for the most urgent.
    public init(level: Int) { state = Lock(State(level: level)) }

    /// 0 for the most urgent.
    public var level: Int { state.withLock { $0.level } }

    /// Makes it as urgent as `level`, unless it is already.
    public func raise(to level: Int) {
        let listeners: [@Sendable (Int) -> Void] = state.withLock { state in
            guard level < state.level else { return [] }
            state.level = level
            return Array(state.listeners.values)
        }
        for listener in listeners { listener(level) }
    }

    /// Calls `body` with each new level until the listener is taken away. Levels that come at the same time may come in any order.
    public func listen(_ body: @escaping @Sendable (Int) -> Void) -> Listener {
        state.withLock { state in
            state.numbers += 1
            state.listeners[state.numbers] = body
            return Listener(urgency: self, number: state.numbers)
        }
    }

    /// Somebody who is told.
    public struct Listener: Sendable {
        fileprivate let urgency: Urgency
        fileprivate let number: UInt64

        /// Tells it no more.
        public func end() { urgency.state.withLock { _ = $0.listeners.removeValue(forKey: number) } }
    }
}
