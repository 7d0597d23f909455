import Threads

/// The conversation of a subscriber: which channels are subscribed to, and who gets their messages.
final class Subscriptions: Conversation {
    /// What the subscriber posts to the loop.
    enum Letter: Sendable {
        case join(Subscription)
        case leave(Subscription)
    }

    private let mailbox: Mailbox<Letter>
    private let settings: RedisSettings
    private let loop: EventLoop
    /// A channel of this connection's own, never left: with no subscription at all hiredis takes late messages for a fault.
    private let anchor = "__subscriber__:\(UInt64.random(in: .min ... .max))"

    private var connection: Connection?
    /// By the channel's bytes: equal strings of Swift may be different ones to the server.
    private var channels: [[UInt8]: Channel] = [:]
    private var outage: Outage
    private var pulse: EventLoop.Timer?

    init(_ mailbox: Mailbox<Letter>, _ settings: RedisSettings, on loop: EventLoop) {
        self.mailbox = mailbox
        self.settings = settings
        self.loop = loop
        outage = Outage(grace: settings.outageGrace)
    }

    /// Does what was posted.
    func readMail() {
        for letter in mailbox.take() {
            switch letter {
            case .join(let member): join(member)
            case .leave(let member) where member.isHandedIn: leave(member, .cancelled)
            // It came before the joining. The caller posts it again, behind that.
            case .leave: break
            }
        }
        connection?.flush()
    }

    // MARK: Members

    private func join(_ member: Subscription) {
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

    private func leave(_ member: Subscription, _ error: RedisError) {
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
        takePulseLater(after: settings.idlePing)
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
        setPulse(nil)
        for key in channels.keys { channels[key]?.lost() }
        channels = channels.filter { !$0.value.isForgotten }
    }

    func closed() {
        connection = nil
        setPulse(nil)
        for channel in channels.values { for member in channel.members { member.end(.closed) } }
        channels = [:]
    }

    // MARK: A sign of life

    private func setPulse(_ timer: EventLoop.Timer?) {
        if let pulse { loop.cancel(pulse) }
        pulse = timer
    }

    private func takePulseLater(after delay: Duration) {
        setPulse(loop.schedule(after: delay) { [weak self] in self?.takePulse() })
    }

    /// A channel may be quiet for days, so silence alone proves nothing: a PING must be answered.
    private func takePulse() {
        guard let connection else { return }
        let now = ContinuousClock.now
        let quiet = connection.lastHeard.duration(to: now)
        guard quiet >= settings.idlePing else { return takePulseLater(after: settings.idlePing - quiet) }
        connection.send(["PING"])
        connection.flush()
        setPulse(
            loop.schedule(after: settings.commandTimeout) { [weak self] in
                guard let self, let connection = self.connection else { return }
                if connection.lastHeard > now { return takePulseLater(after: settings.idlePing) }
                connection.fail(RedisError(.timeout, "the server was silent for \(settings.commandTimeout)"))
            })
    }
}
