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
