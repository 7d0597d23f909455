import Threads

/// Where the feed meets those who follow it: the ring, and each subscriber's place in it.
///
/// Nobody has a queue of its own: who is woken takes from the ring what has come since, all at once. So a subscriber costs the feed
/// nothing but its waking, and what a slow one has not taken yet is there once, for all.
final class EventHub: Sendable {
    /// What a subscriber is told.
    enum News: Sendable {
        /// Events, at least one.
        case records([FeedRecord])
        /// There was none for a while, and all up to here has been handed over.
        case quiet(TopicCursor)
        /// The ring has gone on without the subscriber.
        case tooSlow
        /// Nothing more comes: the gateway stops, or the task is cancelled.
        case over
    }

    typealias Waiter = CheckedContinuation<Void, Never>

    struct Subscriber {
        /// The number of the event that it takes next.
        var position: Int
        var waiter: Waiter?
        var quietAt: ContinuousClock.Instant = .now
        /// Since when its client is given something.
        var givingSince: ContinuousClock.Instant?
        /// Ends its stream.
        let drop: @Sendable (DropReason) -> Void
    }

    enum DropReason: String, CaseIterable, Sendable {
        /// Its client has taken nothing for too long.
        case stalled
        /// It fell behind the ring.
        case behind
    }

    struct State {
        /// nil while the feed does not follow yet.
        var ring: EventRing?
        var subscribers: [Int: Subscriber] = [:]
        var count = 0
        var isOver = false
    }

    let options: EventOptions
    let state = Lock(State())

    init(_ options: EventOptions) { self.options = options }

    /// How far the feed has come; nil while it does not follow yet.
    var cursor: TopicCursor? { state.withLock { $0.ring?.cursor } }

    /// Takes no more subscribers, and tells all that nothing more comes.
    func end() {
        let waiters = state.withLock { state in
            state.isOver = true
            return state.takeWaiters { _ in true }
        }
        for waiter in waiters { waiter.resume() }
    }
}

extension EventHub.State {
    /// Those who are to be woken.
    mutating func takeWaiters(where isMeant: (EventHub.Subscriber) -> Bool) -> [EventHub.Waiter] {
        var waiters: [EventHub.Waiter] = []
        for (number, subscriber) in subscribers where isMeant(subscriber) {
            guard let waiter = subscriber.waiter else { continue }
            subscribers[number]?.waiter = nil
            waiters.append(waiter)
        }
        return waiters
    }
}

// MARK: The feed's side

extension EventHub {
    /// From here on the ring is complete.
    func begin(_ ring: EventRing) {
        state.withLock { $0.ring = ring }
    }

    func append(_ records: [FeedRecord], _ cursor: TopicCursor) {
        state.withLock { state in
            for record in records { state.ring?.append(record) }
            state.ring?.advance(to: cursor)
        }
    }

    /// Wakes those who wait, if there is something for them.
    /// - Returns: how many.
    @discardableResult
    func announce() -> Int {
        let waiters = state.withLock { state in
            let end = state.ring?.end ?? 0
            return state.takeWaiters { $0.position < end }
        }
        for waiter in waiters { waiter.resume() }
        return waiters.count
    }

    /// Wakes those for whom it has been quiet for long, and ends the streams of clients that do not read.
    func tick(_ now: ContinuousClock.Instant = .now) {
        let (waiters, dropped) = state.withLock { state in
            let first = state.ring?.first ?? 0
            var dropped: [(@Sendable (DropReason) -> Void, DropReason)] = []
            for subscriber in state.subscribers.values {
                guard let since = subscriber.givingSince else { continue }
                if subscriber.position < first {
                    dropped.append((subscriber.drop, .behind))
                } else if now - since > options.patience {
                    dropped.append((subscriber.drop, .stalled))
                }
            }
            return (state.takeWaiters { $0.quietAt <= now }, dropped)
        }
        for waiter in waiters { waiter.resume() }
        for (drop, reason) in dropped { drop(reason) }
    }
}

/// One who follows the feed: its place in the ring. For one task at a time; ``end()`` must be called in the end.
struct EventSubscription: Sendable {
    private let hub: EventHub
    private let number: Int

    /// How many bytes of events are handed over at once.
    private static let batchBytes = 16 << 10

    fileprivate init(_ hub: EventHub, _ number: Int) { (self.hub, self.number) = (hub, number) }

    /// What has come since, or else what comes first. The time since it returned counts as what the client takes.
    func next() async -> EventHub.News {
        hub.state.withLock { state in
            state.subscribers[number]?.givingSince = nil
            state.subscribers[number]?.quietAt = .now + hub.options.keepAlive
        }
        while true {
            if let news = hub.state.withLock({ $0.news(for: number, Self.batchBytes) }) { return news }
            await wait()
            if Task.isCancelled { return .over }
        }
    }

    /// It follows no more.
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

extension EventHub {
    /// Follows from now on. For when the feed follows.
    /// - Parameter drop: ends the stream, from any thread.
    /// - Returns: and where that is.
    func subscribe(drop: @escaping @Sendable (DropReason) -> Void) -> (EventSubscription, TopicCursor) {
        let (number, cursor) = state.withLock { state in
            let number = state.add(Subscriber(position: state.ring?.end ?? 0, drop: drop))
            return (number, state.ring?.cursor ?? TopicCursor())
        }
        return (EventSubscription(self, number), cursor)
    }

    /// Follows from this point on, where the ring has all that came since; what comes may begin before it.
    /// - Parameters:
    ///   - isReplayed: whether the point was come to by reading from Kafka. Then it is one that the topic has, though it may be ahead of the
    ///     feed; and it must not lie where the ring ends soon, since reading on is as well.
    ///   - drop: ends the stream, from any thread.
    /// - Returns: nil when that is not so.
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

extension EventHub.State {
    fileprivate mutating func add(_ subscriber: EventHub.Subscriber) -> Int {
        count += 1
        subscribers[count] = subscriber
        return count
    }

    fileprivate func hasNews(for number: Int) -> Bool {
        guard !isOver, let subscriber = subscribers[number] else { return true }
        return subscriber.position < ring?.end ?? 0 || subscriber.quietAt <= .now
    }

    fileprivate mutating func news(for number: Int, _ bytes: Int) -> EventHub.News? {
        guard !isOver, let ring, let subscriber = subscribers[number] else { return .over }
        if subscriber.position < ring.end {
            guard subscriber.position >= ring.first else { return .tooSlow }
            let records = ring.records(from: subscriber.position, atMost: bytes)
            subscribers[number]?.position += records.count
            subscribers[number]?.givingSince = .now
            return .records(records)
        }
        guard subscriber.quietAt <= .now else { return nil }
        subscribers[number]?.givingSince = .now
        return .quiet(ring.cursor)
    }
}
