import Threads

/// Reads Redis channels: one connection however many channels there are and however many readers each of them has.
///
/// Lost, the connection is made anew and the channels are subscribed to again. What is published in between is missed, as
/// always with Redis pub/sub: who must not miss anything looks at the data too.
///
/// ``close()`` must be called in the end: it ends the thread that serves the connection.
public final class RedisSubscriber: Sendable {
    private let loop: EventLoop
    private let mailbox = Mailbox<Subscriptions.Letter>()
    private let session: Session<Subscriptions>

    /// Begins to connect, and returns at once.
    /// - Parameters:
    ///   - onStateChange: told once per change whether there is a connection, on the subscriber's thread: keep it short.
    public init(
        _ endpoint: RedisEndpoint, settings: RedisSettings = RedisSettings(),
        onStateChange: @escaping @Sendable (RedisState) -> Void = { _ in }
    ) {
        loop = EventLoop(name: "redis-pubsub")
        let session = Session(
            Subscriptions(mailbox, settings, on: loop), with: endpoint, settings, on: loop, onStateChange: onStateChange
        )
        self.session = session
        loop.perform { session.assumeIsolated { $0.connect() } }
    }

    /// Subscribes to a channel, and returns when the server has confirmed it: what is published from then on arrives.
    ///
    /// The subscription ends with the stream: when its reader's task is cancelled or nobody holds it. The stream ends when the
    /// subscriber is closed.
    /// - Parameters:
    ///   - limit: so many unread messages are kept; then the oldest are dropped.
    /// - Throws: ``RedisError/Code/unavailable``, ``RedisError/Code/timeout``, ``RedisError/Code/cancelled`` or
    ///   ``RedisError/Code/closed``.
    public nonisolated(nonsending) func subscribe(
        _ channel: String, keeping limit: Int = 256
    ) async throws(RedisError) -> AsyncStream<RedisMessage> {
        let member = Subscription(channel, limit: limit) { [weak self] in self?.post(.leave($0)) }
        return try await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                member.wait(continuation)
                if !post(.join(member)) { member.end(.closed) }
                // One posted before the joining was passed over.
                if Task.isCancelled { post(.leave(member)) }
            }
        } onCancel: {
            post(.leave(member))
        }.get()
    }

    /// Ends the connection and every stream. Returns when the subscriber's thread is gone. A second call does nothing.
    public func close() async {
        for case .join(let member) in mailbox.close() { member.end(.closed) }
        loop.perform { [session] in session.assumeIsolated { $0.close() } }
        await loop.stopped()
    }

    /// False when the subscriber is closed.
    @discardableResult
    private func post(_ letter: Subscriptions.Letter) -> Bool {
        switch mailbox.post(letter) {
        case .first:
            loop.perform { [session] in session.assumeIsolated { $0.talk.readMail() } }
            return true
        case .queued: return true
        case .closed: return false
        }
    }
}
