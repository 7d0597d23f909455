import Concurrency

/// Receives a queue's connection events, and may take over its commands.
protocol CommandQueueDelegate: AnyObject {
    /// A connection is ready for commands.
    func opened()
    /// The connection was lost, or an attempt to connect failed.
    func lost(_ error: RedisError)
    /// True if the command is sent elsewhere instead of completing with this outcome.
    func adopts(_ call: PendingCommand, insteadOf outcome: PendingCommand.Outcome) -> Bool
}

/// Sends commands to one server in order and matches the replies, which arrive in the same order.
final class CommandQueue: ConnectionDelegate {
    private let settings: RedisSettings
    private let loop: EventLoop
    private let room: PendingCommandQueue
    /// Released when the queue is closed.
    private var overseer: (any CommandQueueDelegate)?

    private var connection: Connection?
    /// Commands sent whose last reply has not arrived, including those whose caller no longer waits.
    private var inFlight = Deque<PendingCommand>()
    private var watch: EventLoop.Timer?

    init(_ settings: RedisSettings, on loop: EventLoop, under overseer: (any CommandQueueDelegate)? = nil) {
        self.settings = settings
        self.loop = loop
        self.overseer = overseer
        room = PendingCommandQueue(settings, on: loop)
    }

    /// True if no command is waiting or in flight.
    var isIdle: Bool { inFlight.isEmpty && room.isEmpty }

    /// Sends a command, or queues it until there is a connection. The caller calls ``flush(_:)`` after the last
    /// command.
    func accept(_ call: PendingCommand, _ now: ContinuousClock.Instant) {
        if let connection { send(call, on: connection, now) } else { room.admit(call, now) }
    }

    /// Sends all accepted commands, in a single write if the socket accepts it.
    func flush(_ now: ContinuousClock.Instant) {
        connection?.flush()
        watchFirst(now)
    }

    /// Removes and returns the commands that wait for a connection and may be sent to another node.
    func removeMovable() -> [PendingCommand] { room.removeMovable() }

    private func send(_ call: PendingCommand, on connection: Connection, _ now: ContinuousClock.Instant) {
        guard !call.isAnswered else { return }
        if call.asksFirst {
            // The reply to ASKING is ignored.
            call.asksFirst = false
            put(PendingCommand(.command(["ASKING"])), on: connection, now)
        }
        put(call, on: connection, now)
    }

    private func put(_ call: PendingCommand, on connection: Connection, _ now: ContinuousClock.Instant) {
        call.deadline = now + settings.commandTimeout
        switch call.content {
        case .command(let words): connection.send(words)
        case .pipeline(let commands): for words in commands { connection.send(words) }
        }
        inFlight.append(call)
    }

    // MARK: Connection events

    func opened(_ connection: Connection) {
        self.connection = connection
        let now = ContinuousClock.now
        for call in room.takeAll() { send(call, on: connection, now) }
        watchFirst(now)
        overseer?.opened()
    }

    func received(_ reply: RedisValue) {
        guard let call = inFlight.first, call.receive(reply) else { return }
        _ = inFlight.popFirst()
        guard let overseer else { return call.answer(call.extractOutcome(reply)) }
        let outcome = call.extractOutcome(reply)
        if !overseer.adopts(call, insteadOf: outcome) { call.answer(outcome) }
    }

    func lost(_ error: RedisError) {
        room.note(error, hadConnection: connection != nil)
        connection = nil
        stopWatching()
        let code: RedisError.Code = error.code == .unavailable ? .connectionLost : error.code
        fail(RedisError(code, "connection lost before the reply: \(error.message)"))
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
        while let call = inFlight.popFirst() { call.answer(.failure(error)) }
    }

    // MARK: Timeouts

    private func stopWatching() {
        if let watch { loop.cancel(watch) }
        watch = nil
    }

    /// Schedules a check for when the oldest command is due. All commands have the same timeout, so the first one sent
    /// is the first one due.
    private func watchFirst(_ now: ContinuousClock.Instant) {
        guard watch == nil, let first = inFlight.first else { return }
        watch = loop.schedule(after: now.duration(to: first.deadline)) { [weak self] in self?.lookForLateReplies() }
    }

    private func lookForLateReplies() {
        watch = nil
        let now = ContinuousClock.now
        guard let connection, let first = inFlight.first else { return }
        let error = RedisError(.timeout, "no reply within \(settings.commandTimeout)")
        var due = first.deadline
        for call in inFlight.all {
            due = call.deadline
            if due > now { break }
            call.answer(.failure(error))
        }
        // The oldest command is late, so the server may be slow or gone. It counts as gone if it has sent nothing at
        // all.
        let silentUntil = connection.lastHeard + settings.commandTimeout
        if first.deadline <= now && silentUntil <= now {
            return connection.fail(RedisError(.timeout, "server sent nothing for \(settings.commandTimeout)"))
        }
        let next = first.deadline <= now ? min(due > now ? due : silentUntil, silentUntil) : due
        watch = loop.schedule(after: now.duration(to: next)) { [weak self] in self?.lookForLateReplies() }
    }
}

/// Commands that wait for a connection until the grace period of the outage ends.
final class PendingCommandQueue {
    private let loop: EventLoop
    private var calls: [PendingCommand] = []
    private var outage: OutageState

    init(_ settings: RedisSettings, on loop: EventLoop) {
        self.loop = loop
        outage = OutageState(grace: settings.outageGrace, connecting: settings.connectTimeout)
    }

    /// Queues a command, or fails it if the grace period is over.
    func admit(_ call: PendingCommand, _ now: ContinuousClock.Instant) {
        guard now < outage.graceEnd else { return call.answer(.failure(outage.error)) }
        calls.append(call)
        // The timer is not cancelled when a connection is established; it then finds an empty queue.
        if calls.count == 1 { lookAgain(after: now.duration(to: outage.graceEnd)) }
    }

    /// Records a failed attempt to connect, or the loss of the connection.
    func note(_ reason: RedisError, hadConnection: Bool) {
        outage.note(reason, hadConnection: hadConnection)
        if ContinuousClock.now >= outage.graceEnd { endWait() }
    }

    /// True if no command is waiting.
    var isEmpty: Bool { calls.isEmpty }

    /// Removes and returns all commands.
    func takeAll() -> [PendingCommand] {
        defer { calls = [] }
        return calls
    }

    /// Removes and returns the commands that may be sent to another node: all that do not name one.
    func removeMovable() -> [PendingCommand] {
        defer { calls.removeAll { $0.node == nil } }
        return calls.filter { $0.node == nil }
    }

    private func lookAgain(after delay: Duration) {
        loop.schedule(after: delay) { [weak self] in
            guard let self, !calls.isEmpty else { return }
            let left = ContinuousClock.now.duration(to: outage.graceEnd)
            // The loss of a connection may have extended the grace period.
            if left > .zero { lookAgain(after: left) } else { endWait() }
        }
    }

    private func endWait() {
        for call in takeAll() { call.answer(.failure(outage.error)) }
    }
}

/// A message from a client to its event loop.
enum ClientMessage: Sendable {
    case call(PendingCommand)
    case cancellation(PendingCommand)
    /// A request for the addresses of the primaries.
    case masters(PrimariesRequest)

    /// Fails the message without passing it to the event loop.
    func refuse(_ error: RedisError) {
        switch self {
        case .call(let call): call.answer(.failure(error))
        case .cancellation: break
        case .masters(let question): question.answer(.failure(error))
        }
    }
}

/// A task's request for the addresses of the primaries.
///
/// A class, because a message that holds a continuation would have a size known only at run time, and would be slow to
/// copy.
final class PrimariesRequest: Sendable {
    private let caller: CheckedContinuation<Result<[RedisAddress], RedisError>, Never>

    init(_ caller: CheckedContinuation<Result<[RedisAddress], RedisError>, Never>) { self.caller = caller }

    /// Resumes the task. Must be called exactly once.
    func answer(_ result: Result<[RedisAddress], RedisError>) { caller.resume(returning: result) }
}

/// Executes the commands of a client. The requirements of ``LoopHandler`` are implemented on top of it.
protocol CommandHandler: LoopHandler where Message == ClientMessage {
    /// Accepts a command from a caller.
    func accept(_ call: PendingCommand, _ now: ContinuousClock.Instant)
    /// Sends the accepted commands at the end of a batch.
    func flush(_ now: ContinuousClock.Instant)
    /// The primaries known so far.
    var masters: [RedisAddress] { get }
}

extension CommandHandler {
    func take(_ messages: [ClientMessage]) {
        let now = ContinuousClock.now
        for message in messages {
            switch message {
            case .call(let call):
                call.isHandedIn = true
                accept(call, now)
            case .cancellation(let call) where call.isHandedIn: call.answer(.failure(.cancelled))
            // The cancellation arrived before its command. The caller posts it again after the command.
            case .cancellation: break
            case .masters(let question):
                // The primaries are known once any server has replied.
                accept(
                    PendingCommand(["PING"]) { [weak self] outcome in
                        question.answer(outcome.map { _ in self?.masters ?? [] })
                    },
                    now)
            }
        }
        flush(now)
    }
}

/// Processes on an event loop the messages that other threads post to it.
protocol LoopHandler<Message>: AnyObject, SendableMetatype {
    associatedtype Message: Sendable
    /// Starts the handler.
    func open()
    /// Processes the messages posted since the last call, in the order of posting.
    func take(_ messages: [Message])
    /// Stops the handler. No messages follow.
    func close()
}

/// A thread with an event loop, the handler that runs on it, and the queue through which tasks reach the handler.
actor EventLoopChannel<Message: Sendable> {
    private nonisolated let loop: EventLoop
    private nonisolated let queue = BatchQueue<Message>()
    private let service: any LoopHandler<Message>

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// Starts the thread and opens the handler that `make` returns. ``close(_:)`` must be called in the end.
    init(thread name: String, _ make: (EventLoop) -> sending any LoopHandler<Message>) {
        loop = EventLoop(name: name)
        service = make(loop)
        loop.perform { self.assumeIsolated { $0.service.open() } }
    }

    /// Posts a message from any thread. Returns false if the channel is closed.
    @discardableResult
    nonisolated func post(_ message: Message) -> Bool {
        switch queue.enqueue(message) {
        case .first:
            loop.perform { self.assumeIsolated { $0.service.take($0.queue.drain()) } }
            return true
        case .queued: return true
        case .full, .closed: return false
        }
    }

    /// Closes the handler, stops the thread and waits until it has exited. `refuse` is called with each message that
    /// the handler has not received. A second call has no effect.
    nonisolated func close(_ refuse: (Message) -> Void) async {
        queue.close().forEach(refuse)
        loop.perform { self.assumeIsolated { $0.service.close() } }
        await withCheckedContinuation { continuation in
            _ = NamedThread(name: "redis-stop") {
                self.loop.stop()
                continuation.resume()
            }
        }
    }
}
