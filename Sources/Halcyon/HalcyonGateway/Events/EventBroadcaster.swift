import Concurrency

/// Delivers the events of the feed to its subscribers. It holds the ring buffer and each subscriber's position in it.
///
/// Subscribers have no queues. A subscriber that is woken reads everything that was added to the ring since its last
/// read. A subscriber therefore costs the feed only a wakeup, and pending events are stored once for all subscribers.
final class EventBroadcaster: Sendable {
    /// An element of a subscription.
    enum SubscriptionElement: Sendable {
        /// One or more events.
        case records([BroadcastEvent])
        /// No event arrived for a while. All events before the cursor were delivered.
        case idle(TopicCursor)
        /// The subscriber's position has been overwritten in the ring.
        case lagged
        /// The end of the subscription: the gateway is shutting down, or the task was cancelled.
        case finished
    }

    typealias Waiter = CheckedContinuation<Void, Never>

    struct Subscriber {
        /// The number of the next event.
        var position: Int
        var waiter: Waiter?
        var quietAt: ContinuousClock.Instant = .now
        /// The start of the current write to the client.
        var givingSince: ContinuousClock.Instant?
        /// Ends the subscriber's stream.
        let drop: @Sendable (DropReason) -> Void
    }

    enum DropReason: String, CaseIterable, Sendable {
        /// The client has not read for too long.
        case stalled
        /// The subscriber fell behind the ring.
        case behind
    }

    struct State {
        /// The ring buffer; nil until the feed has caught up.
        var ring: EventRingBuffer?
        var subscribers: [Int: Subscriber] = [:]
        var count = 0
        var isOver = false
    }

    let options: EventOptions
    let state = Lock(State())

    init(_ options: EventOptions) { self.options = options }

    /// The position of the feed; nil until it has caught up.
    var cursor: TopicCursor? { state.withLock { $0.ring?.cursor } }

    /// Rejects new subscribers and ends all subscriptions.
    func end() {
        let waiters = state.withLock { state in
            state.isOver = true
            return state.removeWaiters { _ in true }
        }
        for waiter in waiters { waiter.resume() }
    }
}

extension EventBroadcaster.State {
    /// Removes and returns the continuations of matching subscribers.
    mutating func removeWaiters(where isMeant: (EventBroadcaster.Subscriber) -> Bool) -> [EventBroadcaster.Waiter] {
        var waiters: [EventBroadcaster.Waiter] = []
        for (number, subscriber) in subscribers where isMeant(subscriber) {
            guard let waiter = subscriber.waiter else { continue }
            subscribers[number]?.waiter = nil
            waiters.append(waiter)
        }
        return waiters
    }
}

// MARK: Feed

extension EventBroadcaster {
    /// Sets the ring, which is complete from now on.
    func begin(_ ring: EventRingBuffer) {
        state.withLock { $0.ring = ring }
    }

    func append(_ records: [BroadcastEvent], _ cursor: TopicCursor) {
        state.withLock { state in
            for record in records { state.ring?.append(record) }
            state.ring?.advance(to: cursor)
        }
    }

    /// Wakes the subscribers that have unread events.
    /// - Returns: the number of subscribers that were woken.
    @discardableResult
    func announce() -> Int {
        let waiters = state.withLock { state in
            let end = state.ring?.end ?? 0
            return state.removeWaiters { $0.position < end }
        }
        for waiter in waiters { waiter.resume() }
        return waiters.count
    }

    /// Wakes subscribers whose keep-alive is due, and ends the streams of clients that do not read.
    func tick(_ now: ContinuousClock.Instant = .now) {
        let (waiters, dropped) = state.withLock { state in
            let first = state.ring?.first ?? 0
            var dropped: [(@Sendable (DropReason) -> Void, DropReason)] = []
            for subscriber in state.subscribers.values {
                guard let since = subscriber.givingSince else { continue }
                if subscriber.position < first {
                    dropped.append((subscriber.drop, .behind))
                } else if now - since > options.slowClientTimeout {
                    dropped.append((subscriber.drop, .stalled))
                }
            }
            return (state.removeWaiters { $0.quietAt <= now }, dropped)
        }
        for waiter in waiters { waiter.resume() }
        for (drop, reason) in dropped { drop(reason) }
    }
}

/// A subscriber's position in the feed. Must be used by one task at a time. ``end()`` must be called at the end.
struct EventSubscription: Sendable {
    private let hub: EventBroadcaster
    private let number: Int

    /// The maximum size in bytes of a batch of events.
    private static let batchBytes = 16 << 10

    fileprivate init(_ hub: EventBroadcaster, _ number: Int) { (self.hub, self.number) = (hub, number) }

    /// Returns the unread events, or waits for the next element. The time until the next call counts as the client's
    /// reading time.
    func next() async -> EventBroadcaster.SubscriptionElement {
        hub.state.withLock { state in
            state.subscribers[number]?.givingSince = nil
            state.subscribers[number]?.quietAt = .now + hub.options.keepAlive
        }
        while true {
            if let news = hub.state.withLock({ $0.news(for: number, Self.batchBytes) }) { return news }
            await wait()
            if Task.isCancelled { return .finished }
        }
    }

    /// Removes the subscription.
    func end() { hub.state.withLock { _ = $0.subscribers.removeValue(forKey: number) } }

    private func wait() async {
        await withCancellableContinuation { continuation in
            let hasNews = hub.state.withLock { state in
                if state.hasNews(for: number) { return true }
                state.subscribers[number]?.waiter = continuation
                return false
            }
            if hasNews { continuation.resume() }
        } onCancel: {
            hub.state.withLock { state in
                defer { state.subscribers[number]?.waiter = nil }
                return state.subscribers[number]?.waiter
            }?.resume()
        }
    }
}

extension EventBroadcaster {
    /// Subscribes from the current position. Must be called after the feed has caught up.
    /// - Parameter drop: ends the stream; called on any thread.
    /// - Returns: the subscription and its position.
    func subscribe(drop: @escaping @Sendable (DropReason) -> Void) -> (EventSubscription, TopicCursor) {
        let (number, cursor) = state.withLock { state in
            let number = state.add(Subscriber(position: state.ring?.end ?? 0, drop: drop))
            return (number, state.ring?.cursor ?? TopicCursor())
        }
        return (EventSubscription(self, number), cursor)
    }

    /// Subscribes from a position if the ring contains all events since then. It may deliver events from before the
    /// position, too.
    /// - Parameters:
    ///   - isReplayed: true if the position was reached by reading from Kafka. Such a position is valid even if it is
    ///     ahead of the feed. It must lie in the newer half of the ring, so that it is not overwritten soon.
    ///   - drop: ends the stream; called on any thread.
    /// - Returns: nil if the ring does not contain all these events.
    func subscribe(
        at cursor: TopicCursor, isReplayed: Bool, drop: @escaping @Sendable (DropReason) -> Void
    ) -> EventSubscription? {
        let number: Int? = state.withLock { state in
            guard let ring = state.ring, let position = ring.number(behind: cursor),
                isReplayed ? position >= ring.middle : ring.cursor.hasReached(cursor)
            else { return nil }
            return state.add(Subscriber(position: position, drop: drop))
        }
        return number.map { EventSubscription(self, $0) }
    }
}

extension EventBroadcaster.State {
    fileprivate mutating func add(_ subscriber: EventBroadcaster.Subscriber) -> Int {
        count += 1
        subscribers[count] = subscriber
        return count
    }

    fileprivate func hasNews(for number: Int) -> Bool {
        guard !isOver, let subscriber = subscribers[number] else { return true }
        return subscriber.position < ring?.end ?? 0 || subscriber.quietAt <= .now
    }

    fileprivate mutating func news(for number: Int, _ bytes: Int) -> EventBroadcaster.SubscriptionElement? {
        guard !isOver, let ring, let subscriber = subscribers[number] else { return .finished }
        if subscriber.position < ring.end {
            guard subscriber.position >= ring.first else { return .lagged }
            let records = ring.records(from: subscriber.position, upTo: bytes)
            subscribers[number]?.position += records.count
            subscribers[number]?.givingSince = .now
            return .records(records)
        }
        guard subscriber.quietAt <= .now else { return nil }
        subscribers[number]?.givingSince = .now
        return .idle(ring.cursor)
    }
}
