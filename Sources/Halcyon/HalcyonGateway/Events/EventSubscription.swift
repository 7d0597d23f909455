import Threads

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
