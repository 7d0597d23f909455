import Threads

/// The conversation of a subscriber: which channels are subscribed to, and who gets their messages.
final class Subscriptions: Conversation {
    private let settings: RedisSettings
    private let loop: EventLoop
    /// A channel of this connection's own, never left: with no subscription at all hiredis takes late messages for a fault.
    private let anchor = "__subscriber__:\(UInt64.random(in: .min ... .max))"

    private var connection: Connection?
    /// By the channel's bytes: equal strings of Swift may be different ones to the server.
    private var channels: [[UInt8]: Channel] = [:]
    private var outage: Outage
    private let pulse: Pulse

    init(_ settings: RedisSettings, on loop: EventLoop) {
        self.settings = settings
        self.loop = loop
        outage = Outage(grace: settings.outageGrace, connecting: settings.connectTimeout)
        pulse = Pulse(settings, on: loop)
    }

    /// Sends everything asked for so far.
    func flush() { connection?.flush() }

    // MARK: Members

    /// Somebody wants to read a channel.
    func join(_ member: Subscription) {
        member.isHandedIn = true
        guard connection != nil || ContinuousClock.now < outage.graceEnd else { return member.end(outage.error) }
        let key = Array(member.channel.utf8)
        if channels[key, default: Channel()].join(member) { ask("SUBSCRIBE", key) }
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
            connection == nil ? outage.error : RedisError(.timeout, "the subscription was not confirmed in time"))
        connection?.flush()
    }

    /// Somebody reads a channel no more, because of `error`.
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

    // MARK: Conversation

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

/// A message of a channel.
public struct RedisMessage: Hashable, Sendable {
    /// The channel it was published to.
    public let channel: String
    /// What was published.
    public let payload: [UInt8]

    /// A message with these parts.
    public init(channel: String, payload: [UInt8]) {
        self.channel = channel
        self.payload = payload
    }
}

/// One caller of `subscribe`: first it waits for the server's word, then it has a stream.
///
/// `@unchecked Sendable`: the caller makes it and hands it in; from then on it is touched on the loop's thread alone. Before it
/// has come there, a cancellation touches nothing but ``isHandedIn``, which only the loop sets.
final class Subscription: @unchecked Sendable {
    typealias Messages = AsyncStream<RedisMessage>
    typealias Continuation = CheckedContinuation<Result<Messages, RedisError>, Never>

    let channel: String
    private let limit: Int
    private let onLeave: @Sendable (Subscription) -> Void
    /// Whether the loop has it.
    var isHandedIn = false
    private var caller: Continuation?
    private var sink: Messages.Continuation?

    /// - Parameters:
    ///   - onLeave: called on any thread when nobody reads the stream any more.
    init(_ channel: String, limit: Int, onLeave: @escaping @Sendable (Subscription) -> Void) {
        self.channel = channel
        self.limit = limit
        self.onLeave = onLeave
    }

    /// The caller waits from now on.
    func wait(_ continuation: Continuation) { caller = continuation }

    /// Whether the caller waits for the server's word.
    var isWaiting: Bool { caller != nil }

    /// The channel is subscribed to: a caller that waits gets its stream.
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

    /// Passes a message on, or keeps it until it is read.
    func deliver(_ message: RedisMessage) { sink?.yield(message) }

    /// Answers a caller that waits, or ends its stream.
    func end(_ error: RedisError) {
        caller?.resume(returning: .failure(error))
        caller = nil
        sink?.finish()
        sink = nil
    }
}
