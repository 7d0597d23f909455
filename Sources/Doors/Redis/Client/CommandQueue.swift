import Threads

/// The conversation of a client: calls go out in order, and replies come back in that same order.
final class CommandQueue: Conversation {
    /// What the client posts to the loop.
    enum Letter: Sendable {
        case call(Call)
        case cancellation(Call)
    }

    private let mailbox: Mailbox<Letter>
    private let settings: RedisSettings
    private let loop: EventLoop

    private var connection: Connection?
    /// Sent, not fully answered by the server; also calls whose caller waits no more.
    private var underWay = Fifo<Call>()
    private var watch: EventLoop.Timer?
    /// Calls given while there is no connection.
    private var waiting: [Call] = []
    private var outage: Outage

    init(_ mailbox: Mailbox<Letter>, _ settings: RedisSettings, on loop: EventLoop) {
        self.mailbox = mailbox
        self.settings = settings
        self.loop = loop
        outage = Outage(grace: settings.outageGrace)
    }

    /// Sends everything posted so far, in one write where the socket takes it.
    func readMail() {
        let letters = mailbox.take()
        let now = ContinuousClock.now
        for letter in letters {
            switch letter {
            case .call(let call): accept(call, now)
            case .cancellation(let call) where call.isHandedIn: call.answer(.failure(.cancelled))
            // It came before its call. The caller posts it again, behind the call.
            case .cancellation: break
            }
        }
        connection?.flush()
        watchFirst(now)
    }

    private func accept(_ call: Call, _ now: ContinuousClock.Instant) {
        call.isHandedIn = true
        if let connection {
            send(call, on: connection, now)
        } else if now < outage.graceEnd {
            waiting.append(call)
            endWaitLater(now)
        } else {
            call.answer(.failure(outage.error))
        }
    }

    private func send(_ call: Call, on connection: Connection, _ now: ContinuousClock.Instant) {
        guard !call.isAnswered else { return }
        call.deadline = now + settings.commandTimeout
        switch call.content {
        case .command(let words): connection.send(words)
        case .pipeline(let commands): for words in commands { connection.send(words) }
        }
        underWay.append(call)
    }

    // MARK: Conversation

    func opened(_ connection: Connection) {
        self.connection = connection
        let now = ContinuousClock.now
        for call in waiting { send(call, on: connection, now) }
        waiting = []
        watchFirst(now)
    }

    func received(_ reply: RedisValue) {
        if underWay.first?.receive(reply) == true { _ = underWay.popFirst() }
    }

    func lost(_ error: RedisError) {
        outage.note(error, hadConnection: connection != nil)
        connection = nil
        let code: RedisError.Code = error.code == .unavailable ? .connectionLost : error.code
        while let call = underWay.popFirst() {
            call.answer(.failure(RedisError(code, "no reply: \(error.message)")))
        }
        if let watch { loop.cancel(watch) }
        watch = nil
        if !waiting.isEmpty && ContinuousClock.now >= outage.graceEnd { endWait() }
    }

    func closed() {
        connection = nil
        if let watch { loop.cancel(watch) }
        let error = RedisError(.closed, "the client was closed")
        for call in waiting { call.answer(.failure(error)) }
        while let call = underWay.popFirst() { call.answer(.failure(error)) }
        waiting = []
    }

    // MARK: Patience

    /// Fails the calls that wait for a connection when the grace is over. Not taken back when a connection comes: then it
    /// finds nothing to do.
    private func endWaitLater(_ now: ContinuousClock.Instant) {
        guard waiting.count == 1 else { return }
        loop.schedule(after: now.duration(to: outage.graceEnd)) { [weak self] in self?.endWait() }
    }

    private func endWait() {
        guard connection == nil else { return }
        for call in waiting { call.answer(.failure(outage.error)) }
        waiting = []
    }

    /// Looks again when the oldest call is due. All calls have the same patience, so the first sent is the first due.
    private func watchFirst(_ now: ContinuousClock.Instant) {
        guard watch == nil, let first = underWay.first else { return }
        watch = loop.schedule(after: now.duration(to: first.deadline)) { [weak self] in self?.lookForLateReplies() }
    }

    private func lookForLateReplies() {
        watch = nil
        let now = ContinuousClock.now
        guard let connection, let first = underWay.first else { return }
        let error = RedisError(.timeout, "no reply within \(settings.commandTimeout)")
        var due = first.deadline
        for call in underWay.all {
            due = call.deadline
            if due > now { break }
            call.answer(.failure(error))
        }
        // Where the oldest is late, the server may be slow or gone: it is gone when it says nothing.
        let silentUntil = connection.lastHeard + settings.commandTimeout
        if first.deadline <= now && silentUntil <= now {
            return connection.fail(RedisError(.timeout, "the server was silent for \(settings.commandTimeout)"))
        }
        let next = first.deadline <= now ? min(due > now ? due : silentUntil, silentUntil) : due
        watch = loop.schedule(after: now.duration(to: next)) { [weak self] in self?.lookForLateReplies() }
    }
}
