import Concurrency

/// Subscribes to Redis channels over a single connection, for any number of channels and readers. It connects to the
/// only server, to the primary that sentinels name, or to any node of a cluster, since each node receives the messages
/// of the others.
///
/// After a loss, the subscriber reconnects and subscribes again. Messages published in between are lost, as always with
/// Redis pub/sub. Readers that must not miss anything have to read the data too.
///
/// ``close()`` must be called in the end. It stops the thread that serves the connection.
public final class RedisSubscriber: Sendable {
    private let loop: EventLoopChannel<SubscriberMessage>

    /// Starts to connect and returns immediately.
    /// - Parameters:
    ///   - settings: the timeouts; nil for the defaults with the timeout of the endpoint.
    ///   - onStateChange: callback for each change of the connection state. It runs on the subscriber's thread and
    ///     must return quickly.
    public init(
        _ endpoint: RedisEndpoint, settings: RedisSettings? = nil,
        onStateChange: @escaping @Sendable (RedisState) -> Void = { _ in }
    ) {
        let settings = settings ?? RedisSettings(endpoint)
        loop = EventLoopChannel(thread: "redis-pubsub") { loop in
            SubscriberLoopHandler(
                ReconnectingConnection(
                    Subscriptions(settings, on: loop), with: endpoint.guide(settings, on: loop), settings, on: loop,
                    onStateChange: onStateChange))
        }
    }

    /// Subscribes to a channel and waits for the server's confirmation. Messages published after that arrive.
    ///
    /// The subscription ends with the stream: when its reader's task is cancelled, or when the stream is released. The
    /// stream ends when the subscriber is closed.
    /// - Parameters:
    ///   - limit: the number of unread messages that are buffered; beyond it, the oldest are dropped.
    /// - Throws: ``RedisError/Code/unavailable``, ``RedisError/Code/timeout``, ``RedisError/Code/cancelled`` or
    ///   ``RedisError/Code/closed``.
    public nonisolated(nonsending) func subscribe(
        _ channel: String, keeping limit: Int = 256
    ) async throws(RedisError) -> AsyncStream<RedisMessage> {
        let member = Subscription(channel, limit: limit) { [weak self] in self?.loop.post(.leave($0)) }
        return try await withCancellableContinuation { continuation in
            member.wait(continuation)
            if !loop.post(.join(member)) { member.end(.closed) }
        } onCancel: {
            loop.post(.leave(member))
        }.get()
    }

    /// Reads a channel until the task is cancelled or the subscriber is closed. Subscribes again after each loss of the
    /// connection.
    /// - Parameters:
    ///   - limit: the number of unread messages that are buffered; beyond it, the oldest are dropped.
    ///   - rest: the delay between attempts to subscribe.
    public func follow(
        _ channel: String, keeping limit: Int = 256, whenDown rest: Duration = .seconds(1),
        _ read: (RedisMessage) -> Void
    ) async {
        while !Task.isCancelled {
            do throws(RedisError) {
                for await message in try await subscribe(channel, keeping: limit) { read(message) }
                return
            } catch {
                guard error.isRetriable else { return }
            }
            await Task.sleepUnlessCancelled(for: rest)
        }
    }

    /// Closes the connection and every stream. Returns when the subscriber's thread has exited. A second call has no
    /// effect.
    public func close() async {
        await loop.close { if case .join(let member) = $0 { member.end(.closed) } }
    }
}

/// A message from a subscriber to its event loop.
enum SubscriberMessage: Sendable {
    case join(Subscription)
    case leave(Subscription)
}

/// The handler of a subscriber.
private final class SubscriberLoopHandler: LoopHandler {
    private let session: ReconnectingConnection<Subscriptions>

    init(_ session: ReconnectingConnection<Subscriptions>) { self.session = session }

    func open() { session.connect() }

    func take(_ messages: [SubscriberMessage]) {
        for message in messages {
            switch message {
            case .join(let member): session.talk.join(member)
            case .leave(let member) where member.isHandedIn: session.talk.leave(member, .cancelled)
            // The message arrived before its `join`. The caller posts it again after that.
            case .leave: break
            }
        }
        session.talk.flush()
    }

    func close() { session.close() }
}

/// Checks that a connection that receives messages is alive. A channel may be quiet for days, so silence alone proves
/// nothing. The server must answer a PING.
final class SubscriberKeepAlive {
    private let settings: RedisSettings
    private let loop: EventLoop
    private var connection: Connection?
    private var timer: EventLoop.Timer?

    init(_ settings: RedisSettings, on loop: EventLoop) {
        self.settings = settings
        self.loop = loop
    }

    /// Starts to monitor a new connection.
    func begin(_ connection: Connection) {
        self.connection = connection
        receiveLater(after: settings.idlePing)
    }

    /// Stops monitoring when the connection is lost.
    func end() {
        connection = nil
        set(nil)
    }

    private func set(_ new: EventLoop.Timer?) {
        if let timer { loop.cancel(timer) }
        timer = new
    }

    private func receiveLater(after delay: Duration) {
        set(loop.schedule(after: delay) { [weak self] in self?.take() })
    }

    private func take() {
        guard let connection else { return }
        let now = ContinuousClock.now
        let quiet = connection.lastHeard.duration(to: now)
        guard quiet >= settings.idlePing else { return receiveLater(after: settings.idlePing - quiet) }
        connection.send(["PING"])
        connection.flush()
        set(
            loop.schedule(after: settings.commandTimeout) { [weak self] in
                guard let self, let connection = self.connection else { return }
                if connection.lastHeard > now { return receiveLater(after: settings.idlePing) }
                connection.fail(RedisError(.timeout, "server sent nothing for \(settings.commandTimeout)"))
            })
    }
}

/// The state of one channel: its readers, and the pending and confirmed requests to the server.
///
/// A pure value. Confirmations arrive in the order of the requests. A channel that was left and joined again at once is
/// subscribed only when the *last* confirmation has arrived.
struct SubscriptionConnection {
    private(set) var members: [Subscription] = []
    /// True if the last request to the server was SUBSCRIBE.
    private var isAskedFor = false
    /// The number of unconfirmed SUBSCRIBE commands.
    private var unconfirmed = 0

    /// True if messages published from now on arrive.
    var isSubscribed: Bool { isAskedFor && unconfirmed == 0 }
    /// True if the channel has no readers and no pending requests.
    var isForgotten: Bool { members.isEmpty && unconfirmed == 0 && !isAskedFor }

    /// Adds a reader. Returns true if the server must be asked to subscribe.
    mutating func join(_ member: Subscription) -> Bool {
        members.append(member)
        return !isAskedFor
    }

    /// Removes a reader. Returns true if the server must be asked to unsubscribe.
    mutating func leave(_ member: Subscription) -> Bool {
        members.removeAll { $0 === member }
        return members.isEmpty && isAskedFor
    }

    /// Records that SUBSCRIBE was sent.
    mutating func askedToSubscribe() {
        isAskedFor = true
        unconfirmed += 1
    }

    /// Records that UNSUBSCRIBE was sent.
    mutating func askedToUnsubscribe() { isAskedFor = false }

    /// Records that the server has confirmed a SUBSCRIBE.
    mutating func confirmed() { unconfirmed = max(0, unconfirmed - 1) }

    /// Records the loss of the connection, which ends every subscription.
    mutating func lost() { (isAskedFor, unconfirmed) = (false, 0) }
}
