import Concurrency

/// The subscriptions of a connection, and the readers of their messages.
final class Subscriptions: ConnectionDelegate {
    private let settings: RedisSettings
    private let loop: EventLoop
    /// A channel of this connection that is never left. Without any subscription, hiredis treats late messages as an
    /// error.
    private let anchor = "__subscriber__:\(UInt64.random(in: .min ... .max))"

    private var connection: Connection?
    /// Keyed by the channel's bytes, because Swift strings that compare equal may name different channels on the
    /// server.
    private var channels: [[UInt8]: SubscriptionConnection] = [:]
    private var outage: OutageState
    private let pulse: SubscriberKeepAlive

    init(_ settings: RedisSettings, on loop: EventLoop) {
        self.settings = settings
        self.loop = loop
        outage = OutageState(grace: settings.outageGrace, connecting: settings.connectTimeout)
        pulse = SubscriberKeepAlive(settings, on: loop)
    }

    /// Sends all pending requests.
    func flush() { connection?.flush() }

    // MARK: Readers

    /// Adds a reader to a channel.
    func join(_ member: Subscription) {
        member.isHandedIn = true
        guard connection != nil || ContinuousClock.now < outage.graceEnd else { return member.end(outage.error) }
        let key = Array(member.channel.utf8)
        if channels[key, default: SubscriptionConnection()].join(member) { ask("SUBSCRIBE", key) }
        if channels[key]?.isSubscribed == true { member.begin() }
        if member.isWaiting {
            loop.schedule(after: settings.commandTimeout) { [weak self, weak member] in
                if let self, let member, member.isWaiting { giveUp(member) }
            }
        }
    }

    private func giveUp(_ member: Subscription) {
        leave(
            member,
            connection == nil ? outage.error : RedisError(.timeout, "subscription not confirmed within the timeout"))
        connection?.flush()
    }

    /// Removes a reader from a channel because of `error`.
    func leave(_ member: Subscription, _ error: RedisError) {
        member.end(error)
        let key = Array(member.channel.utf8)
        if channels[key]?.leave(member) == true { ask("UNSUBSCRIBE", key) }
        if channels[key]?.isForgotten == true { channels[key] = nil }
    }

    private func ask(_ verb: RedisArgument, _ key: [UInt8]) {
        guard let connection else { return }
        connection.send([verb, .bytes(key)])
        if verb == "SUBSCRIBE" { channels[key]?.askedToSubscribe() } else { channels[key]?.askedToUnsubscribe() }
    }

    // MARK: Connection events

    func opened(_ connection: Connection) {
        self.connection = connection
        connection.send(["SUBSCRIBE", .string(anchor)])
        for key in channels.keys { ask("SUBSCRIBE", key) }
        pulse.begin(connection)
    }

    func received(_ reply: RedisValue) {
        guard let parts = reply.array, parts.count == 3, let kind = parts[0].string, let key = parts[1].bytes else {
            return
        }
        switch kind {
        case "message":
            guard let channel = channels[key], let payload = parts[2].bytes else { return }
            let message = RedisMessage(channel: String(decoding: key, as: UTF8.self), payload: payload)
            for member in channel.members { member.deliver(message) }
        case "subscribe":
            channels[key]?.confirmed()
            guard let channel = channels[key] else { return }
            if channel.isSubscribed { for member in channel.members { member.begin() } }
            if channel.isForgotten { channels[key] = nil }
        default: break
        }
    }

    func lost(_ error: RedisError) {
        outage.note(error, hadConnection: connection != nil)
        connection = nil
        pulse.end()
        for key in channels.keys { channels[key]?.lost() }
        channels = channels.filter { !$0.value.isForgotten }
    }

    func closed() {
        connection = nil
        pulse.end()
        for channel in channels.values { for member in channel.members { member.end(.closed) } }
        channels = [:]
    }
}

/// A message published to a channel.
public struct RedisMessage: Hashable, Sendable {
    /// The channel that the message was published to.
    public let channel: String
    /// The bytes of the message.
    public let payload: [UInt8]

    /// Creates a message.
    public init(channel: String, payload: [UInt8]) {
        self.channel = channel
        self.payload = payload
    }
}

/// A caller of `subscribe`. It waits for the server's confirmation, and then has a stream.
///
/// `@unchecked Sendable`: the caller creates it and hands it over. From then on only the loop's thread accesses it.
/// Before it has reached the loop, a cancellation only reads ``isHandedIn``, which only the loop sets.
final class Subscription: @unchecked Sendable {
    typealias Messages = AsyncStream<RedisMessage>
    typealias Continuation = CheckedContinuation<Result<Messages, RedisError>, Never>

    let channel: String
    private let limit: Int
    private let onLeave: @Sendable (Subscription) -> Void
    /// True if the loop has received the subscription.
    var isHandedIn = false
    private var caller: Continuation?
    private var sink: Messages.Continuation?

    /// Creates a subscription.
    /// - Parameters:
    ///   - onLeave: callback for the end of the stream, on any thread.
    init(_ channel: String, limit: Int, onLeave: @escaping @Sendable (Subscription) -> Void) {
        self.channel = channel
        self.limit = limit
        self.onLeave = onLeave
    }

    /// Sets the continuation to resume with the stream.
    func wait(_ continuation: Continuation) { caller = continuation }

    /// True if the caller waits for the server's confirmation.
    var isWaiting: Bool { caller != nil }

    /// Hands a stream to the waiting caller once the channel is subscribed.
    func begin() {
        guard let caller else { return }
        let (stream, continuation) = Messages.makeStream(bufferingPolicy: .bufferingNewest(limit))
        continuation.onTermination = { [weak self] _ in
            if let self { onLeave(self) }
        }
        sink = continuation
        self.caller = nil
        caller.resume(returning: .success(stream))
    }

    /// Delivers a message to the stream, which buffers it until it is read.
    func deliver(_ message: RedisMessage) { sink?.yield(message) }

    /// Fails a waiting caller, or ends its stream.
    func end(_ error: RedisError) {
        caller?.resume(returning: .failure(error))
        caller = nil
        sink?.finish()
        sink = nil
    }
}
