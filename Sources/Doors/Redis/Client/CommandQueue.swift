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

/// Calls that wait for a connection: for as long as the outage's grace lasts.
final class WaitingRoom {
    private let loop: EventLoop
    private var calls: [Call] = []
    private var outage: Outage

    init(_ settings: RedisSettings, on loop: EventLoop) {
        self.loop = loop
        outage = Outage(grace: settings.outageGrace, connecting: settings.connectTimeout)
    }

    /// Lets a call wait, or fails it when the grace is over.
    func admit(_ call: Call, _ now: ContinuousClock.Instant) {
        guard now < outage.graceEnd else { return call.answer(.failure(outage.error)) }
        calls.append(call)
        // Not taken back when a connection comes: then it finds nothing to do.
        if calls.count == 1 { lookAgain(after: now.duration(to: outage.graceEnd)) }
    }

    /// There is still, or again, no connection.
    func note(_ reason: RedisError, hadConnection: Bool) {
        outage.note(reason, hadConnection: hadConnection)
        if ContinuousClock.now >= outage.graceEnd { endWait() }
    }

    /// Whether nobody waits.
    var isEmpty: Bool { calls.isEmpty }

    /// Takes all calls out.
    func takeAll() -> [Call] {
        defer { calls = [] }
        return calls
    }

    /// Takes those out that may go elsewhere: all that name no node.
    func takeMovable() -> [Call] {
        defer { calls.removeAll { $0.node == nil } }
        return calls.filter { $0.node == nil }
    }

    private func lookAgain(after delay: Duration) {
        loop.schedule(after: delay) { [weak self] in
            guard let self, !calls.isEmpty else { return }
            let left = ContinuousClock.now.duration(to: outage.graceEnd)
            // A loss may have made it longer.
            if left > .zero { lookAgain(after: left) } else { endWait() }
        }
    }

    private func endWait() {
        for call in takeAll() { call.answer(.failure(outage.error)) }
    }
}

/// What a client posts to its loop.
enum ClientLetter: Sendable {
    case call(Call)
    case cancellation(Call)
    /// Who the masters are.
    case masters(MastersQuestion)

    /// Answers with an error without having come to the loop.
    func refuse(_ error: RedisError) {
        switch self {
        case .call(let call): call.answer(.failure(error))
        case .cancellation: break
        case .masters(let question): question.answer(.failure(error))
        }
    }
}

/// A task that wants to know who the masters are.
///
/// A class: a letter that held a continuation would have a size that is known at run time alone, and be slow to copy.
final class MastersQuestion: Sendable {
    private let caller: CheckedContinuation<Result<[RedisAddress], RedisError>, Never>

    init(_ caller: CheckedContinuation<Result<[RedisAddress], RedisError>, Never>) { self.caller = caller }

    /// Answers the task; to be called once.
    func answer(_ result: Result<[RedisAddress], RedisError>) { caller.resume(returning: result) }
}

/// What a client does with its calls; the rest of a ``Service`` follows from it.
protocol CallService: Service where Letter == ClientLetter {
    /// A call has come.
    func accept(_ call: Call, _ now: ContinuousClock.Instant)
    /// A batch has come to its end: time to send.
    func flush(_ now: ContinuousClock.Instant)
    /// The masters, as far as they are known.
    var masters: [RedisAddress] { get }
}

extension CallService {
    func take(_ letters: [ClientLetter]) {
        let now = ContinuousClock.now
        for letter in letters {
            switch letter {
            case .call(let call):
                call.isHandedIn = true
                accept(call, now)
            case .cancellation(let call) where call.isHandedIn: call.answer(.failure(.cancelled))
            // It came before its call. The caller posts it again, behind the call.
            case .cancellation: break
            case .masters(let question):
                // Once somebody has answered, the masters are known.
                accept(
                    Call(["PING"]) { [weak self] outcome in question.answer(outcome.map { _ in self?.masters ?? [] }) },
                    now)
            }
        }
        flush(now)
    }
}

/// What works on a loop for those who post letters to it.
protocol Service<Letter>: AnyObject, SendableMetatype {
    associatedtype Letter: Sendable
    /// Begins.
    func open()
    /// Does what was posted since the last time, in the order of posting.
    func take(_ letters: [Letter])
    /// Ends; letters come no more.
    func close()
}

/// A thread of a client's own, the service that lives there, and the mailbox through which tasks reach it.
actor Desk<Letter: Sendable> {
    private nonisolated let loop: EventLoop
    private nonisolated let mailbox = Mailbox<Letter>()
    private let service: any Service<Letter>

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// Starts the thread, and opens there what `make` makes. ``close(_:)`` must be called in the end.
    init(thread name: String, _ make: (EventLoop) -> sending any Service<Letter>) {
        loop = EventLoop(name: name)
        service = make(loop)
        loop.perform { self.assumeIsolated { $0.service.open() } }
    }

    /// Posts a letter, from any thread. False when the desk is closed.
    @discardableResult
    nonisolated func post(_ letter: Letter) -> Bool {
        switch mailbox.post(letter) {
        case .first:
            loop.perform { self.assumeIsolated { $0.service.take($0.mailbox.take()) } }
            return true
        case .queued: return true
        case .closed: return false
        }
    }

    /// Closes the service and ends the thread; returns when it is gone. `refuse` is called with each letter that the service has
    /// not seen. A second call does nothing.
    nonisolated func close(_ refuse: (Letter) -> Void) async {
        mailbox.close().forEach(refuse)
        loop.perform { self.assumeIsolated { $0.service.close() } }
        await withCheckedContinuation { continuation in
            _ = WorkThread(name: "redis-stop", stackSize: 1 << 16) {
                self.loop.stop()
                continuation.resume()
            }
        }
    }
}
