import Threads

/// Reads Redis channels: one connection however many channels there are and however many readers each of them has. It goes to the only
/// server, to the master that sentinels name, or to any node of a cluster: each hears what is published at the others.
///
/// Lost, the connection is made anew and the channels are subscribed to again. What is published in between is missed, as
/// always with Redis pub/sub: who must not miss anything looks at the data too.
///
/// ``close()`` must be called in the end: it ends the thread that serves the connection.
public final class RedisSubscriber: Sendable {
    private let desk: Desk<SubscriberLetter>

    /// Begins to connect, and returns at once.
    /// - Parameters:
    ///   - onStateChange: told once per change whether there is a connection, on the subscriber's thread: keep it short.
    public init(
        _ endpoint: RedisEndpoint, settings: RedisSettings = RedisSettings(),
        onStateChange: @escaping @Sendable (RedisState) -> Void = { _ in }
    ) {
        desk = Desk(thread: "redis-pubsub") { loop in
            SubscriberService(
                Session(
                    Subscriptions(settings, on: loop), with: endpoint.guide(settings, on: loop), settings, on: loop,
                    onStateChange: onStateChange))
        }
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
        let member = Subscription(channel, limit: limit) { [weak self] in self?.desk.post(.leave($0)) }
        return try await withCancellableContinuation { continuation in
            member.wait(continuation)
            if !desk.post(.join(member)) { member.end(.closed) }
        } onCancel: {
            desk.post(.leave(member))
        }.get()
    }

    /// Reads a channel until the task is cancelled or the subscriber closed, however often the connection is lost.
    /// - Parameters:
    ///   - limit: so many unread messages are kept; then the oldest are dropped.
    ///   - rest: time between attempts to subscribe.
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

    /// Ends the connection and every stream. Returns when the subscriber's thread is gone. A second call does nothing.
    public func close() async {
        await desk.close { if case .join(let member) = $0 { member.end(.closed) } }
    }
}

/// What a subscriber posts to its loop.
enum SubscriberLetter: Sendable {
    case join(Subscription)
    case leave(Subscription)
}

/// The service of a subscriber.
private final class SubscriberService: Service {
    private let session: Session<Subscriptions>

    init(_ session: Session<Subscriptions>) { self.session = session }

    func open() { session.connect() }

    func take(_ letters: [SubscriberLetter]) {
        for letter in letters {
            switch letter {
            case .join(let member): session.talk.join(member)
            case .leave(let member) where member.isHandedIn: session.talk.leave(member, .cancelled)
            // It came before the joining. The caller posts it again, behind that.
            case .leave: break
            }
        }
        session.talk.flush()
    }

    func close() { session.close() }
}

/// A sign of life of a connection that hears messages. A channel may be quiet for days, so silence alone proves nothing: a PING must be
/// answered.
final class Pulse {
    private let settings: RedisSettings
    private let loop: EventLoop
    private var connection: Connection?
    private var timer: EventLoop.Timer?

    init(_ settings: RedisSettings, on loop: EventLoop) {
        self.settings = settings
        self.loop = loop
    }

    /// Looks after a fresh connection.
    func begin(_ connection: Connection) {
        self.connection = connection
        takeLater(after: settings.idlePing)
    }

    /// The connection is gone.
    func end() {
        connection = nil
        set(nil)
    }

    private func set(_ new: EventLoop.Timer?) {
        if let timer { loop.cancel(timer) }
        timer = new
    }

    private func takeLater(after delay: Duration) {
        set(loop.schedule(after: delay) { [weak self] in self?.take() })
    }

    private func take() {
        guard let connection else { return }
        let now = ContinuousClock.now
        let quiet = connection.lastHeard.duration(to: now)
        guard quiet >= settings.idlePing else { return takeLater(after: settings.idlePing - quiet) }
        connection.send(["PING"])
        connection.flush()
        set(
            loop.schedule(after: settings.commandTimeout) { [weak self] in
                guard let self, let connection = self.connection else { return }
                if connection.lastHeard > now { return takeLater(after: settings.idlePing) }
                connection.fail(RedisError(.timeout, "the server was silent for \(settings.commandTimeout)"))
            })
    }
}

/// What a subscriber knows of one channel: who reads it, and what the server was asked and has confirmed.
///
/// A pure value. Confirmations come in the order of the requests, so a channel that was left and joined again at once is
/// subscribed to only when the *last* of them has come.
struct Channel {
    private(set) var members: [Subscription] = []
    /// Whether the last thing the server was asked is to subscribe.
    private var isAskedFor = false
    /// SUBSCRIBE commands without their confirmation.
    private var unconfirmed = 0

    /// Whether messages published from now on arrive.
    var isSubscribed: Bool { isAskedFor && unconfirmed == 0 }
    /// Whether nothing more is to be known of the channel.
    var isForgotten: Bool { members.isEmpty && unconfirmed == 0 && !isAskedFor }

    /// Adds a reader. True when the server must be asked to subscribe.
    mutating func join(_ member: Subscription) -> Bool {
        members.append(member)
        return !isAskedFor
    }

    /// Takes a reader out. True when the server must be asked to unsubscribe.
    mutating func leave(_ member: Subscription) -> Bool {
        members.removeAll { $0 === member }
        return members.isEmpty && isAskedFor
    }

    /// SUBSCRIBE was sent.
    mutating func askedToSubscribe() {
        isAskedFor = true
        unconfirmed += 1
    }

    /// UNSUBSCRIBE was sent.
    mutating func askedToUnsubscribe() { isAskedFor = false }

    /// The server has confirmed a SUBSCRIBE.
    mutating func confirmed() { unconfirmed = max(0, unconfirmed - 1) }

    /// The connection is gone, and with it every subscription.
    mutating func lost() { (isAskedFor, unconfirmed) = (false, 0) }
}
