import Threads

/// Who stands above a queue: hears what becomes of its connection, and may take calls over.
protocol Overseer: AnyObject {
    /// There is a connection.
    func opened()
    /// The connection is gone, or an attempt at one failed.
    func lost(_ error: RedisError)
    /// Whether a call goes on elsewhere in place of being answered so.
    func takesOver(_ call: Call, insteadOf outcome: Call.Outcome) -> Bool
}

/// The conversation with one server: calls go out in order, and replies come back in that same order.
final class CommandQueue: Conversation {
    private let settings: RedisSettings
    private let loop: EventLoop
    private let room: WaitingRoom
    /// Let go when the queue is closed.
    private var overseer: (any Overseer)?

    private var connection: Connection?
    /// Sent, not fully answered by the server; also calls whose caller waits no more.
    private var underWay = Fifo<Call>()
    private var watch: EventLoop.Timer?

    init(_ settings: RedisSettings, on loop: EventLoop, under overseer: (any Overseer)? = nil) {
        self.settings = settings
        self.loop = loop
        self.overseer = overseer
        room = WaitingRoom(settings, on: loop)
    }

    /// Whether it has nothing to do.
    var isIdle: Bool { underWay.isEmpty && room.isEmpty }

    /// Sends a call, or lets it wait for a connection. ``flush(_:)`` follows when there is no other one to send.
    func accept(_ call: Call, _ now: ContinuousClock.Instant) {
        if let connection { send(call, on: connection, now) } else { room.admit(call, now) }
    }

    /// Sends everything accepted so far, in one write where the socket takes it.
    func flush(_ now: ContinuousClock.Instant) {
        connection?.flush()
        watchFirst(now)
    }

    /// Takes out the calls that wait for a connection and may go elsewhere.
    func takeMovable() -> [Call] { room.takeMovable() }

    private func send(_ call: Call, on connection: Connection, _ now: ContinuousClock.Instant) {
        guard !call.isAnswered else { return }
        if call.asksFirst {
            // Its OK belongs to nobody.
            call.asksFirst = false
            put(Call(.command(["ASKING"])), on: connection, now)
        }
        put(call, on: connection, now)
    }

    private func put(_ call: Call, on connection: Connection, _ now: ContinuousClock.Instant) {
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
        for call in room.takeAll() { send(call, on: connection, now) }
        watchFirst(now)
        overseer?.opened()
    }

    func received(_ reply: RedisValue) {
        guard let call = underWay.first, call.receive(reply) else { return }
        _ = underWay.popFirst()
        guard let overseer else { return call.answer(call.takeOutcome(reply)) }
        let outcome = call.takeOutcome(reply)
        if !overseer.takesOver(call, insteadOf: outcome) { call.answer(outcome) }
    }

    func lost(_ error: RedisError) {
        room.note(error, hadConnection: connection != nil)
        connection = nil
        stopWatching()
        let code: RedisError.Code = error.code == .unavailable ? .connectionLost : error.code
        fail(RedisError(code, "no reply: \(error.message)"))
        overseer?.lost(error)
    }

    func closed() {
        connection = nil
        overseer = nil
        stopWatching()
        let error = RedisError(.closed, "the client was closed")
        for call in room.takeAll() { call.answer(.failure(error)) }
        fail(error)
    }

    private func fail(_ error: RedisError) {
        while let call = underWay.popFirst() { call.answer(.failure(error)) }
    }

    // MARK: Patience

    private func stopWatching() {
        if let watch { loop.cancel(watch) }
        watch = nil
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
