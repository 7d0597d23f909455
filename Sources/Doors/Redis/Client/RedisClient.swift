import CHiredis
import Threads

/// A Redis client that any number of tasks share: of one server, of the master that sentinels name, or of a cluster. Callers need not
/// know which it is.
///
/// There is one connection for each server, and one thread for all of them. Commands given at the same time are pipelined: they
/// leave in one write, and each caller is resumed by its own reply. Connections are kept for ever: lost, they are made anew, after a
/// rest that grows with each failure. What was under way fails then; nothing that may have run is ever sent twice.
///
/// In a cluster each command goes to the master that has its keys, which must lie in one slot; where they are is known for the
/// commands of ``KeyPlaces``. Redirections are followed, and the masters of slots learnt anew when they change. Commands without a key
/// go to any master, except those that are about one server (`SCAN`, `INFO`, `SCRIPT`, …): these must name it, ``send(_:to:)``.
/// A master that is away takes no other with it: commands for it fail as they do for a single server.
///
/// ``close()`` must be called in the end: it ends the thread that serves the connections.
public final class RedisClient: Sendable {
    private let desk: Desk<ClientLetter>

    /// Begins to connect, and returns at once.
    /// - Parameters:
    ///   - onStateChange: told once per change whether there is a connection, on the client's thread: keep it short.
    public init(
        _ endpoint: RedisEndpoint, settings: RedisSettings = RedisSettings(),
        onStateChange: @escaping @Sendable (RedisState) -> Void = { _ in }
    ) {
        desk = Desk(thread: "redis") { loop in
            if case .cluster(let seeds) = endpoint.servers {
                return Cluster(seeds, endpoint.login, settings, on: loop, onStateChange: onStateChange)
            }
            return DirectLine(
                endpoint.guide(settings, on: loop), followsMaster: endpoint.isBehindSentinels, settings, on: loop,
                onStateChange: onStateChange)
        }
    }

    /// Sends one command and waits for its reply.
    ///
    /// Cancelling the task ends the wait at once; the server may run the command all the same, unless the task was cancelled
    /// before it came here.
    /// - Throws: ``RedisError/Code/server(_:)`` for an error reply, ``RedisError/Code/misuse`` for a command that a cluster cannot
    ///   run as it is, else what kept the reply from coming.
    public nonisolated(nonsending) func send(_ command: RedisArgument...) async throws(RedisError) -> RedisValue {
        try await send(command)
    }

    /// Sends one command, given as an array, and waits for its reply.
    /// - Throws: as ``send(_:)``.
    public nonisolated(nonsending) func send(_ command: [RedisArgument]) async throws(RedisError) -> RedisValue {
        try await perform(Call(.command(command)))
    }

    /// Sends one command to one node of a cluster, whatever keys it has, and waits for its reply. A single server is meant in any
    /// case.
    /// - Throws: as ``send(_:)``; redirections come as they are.
    public nonisolated(nonsending) func send(
        _ command: [RedisArgument], to node: RedisAddress
    ) async throws(RedisError) -> RedisValue {
        try await perform(Call(.command(command), to: node))
    }

    /// The masters that serve slots; of a single server its own address. It waits for a connection as a command does.
    /// - Throws: what kept them from being known.
    public nonisolated(nonsending) func masters() async throws(RedisError) -> [RedisAddress] {
        try await withCheckedContinuation { continuation in
            let letter = ClientLetter.masters(MastersQuestion(continuation))
            if !desk.post(letter) { letter.refuse(.closed) }
        }.get()
    }

    /// Sends several commands one right after the other, with none of another task between them, and waits for all replies.
    ///
    /// Between `["MULTI"]` and `["EXEC"]` they are a transaction, whose results are EXEC's array.
    ///
    /// In a cluster this holds for the commands of each slot by themselves. When a master of several is away, an error that
    /// says so is a ``RedisValue/error(_:)`` in the place of each of its commands; the others have their replies.
    /// - Returns: a reply for each command; an error reply is a ``RedisValue/error(_:)`` in its place.
    /// - Throws: what kept the replies from coming, all of them; ``RedisError/Code/misuse`` as ``send(_:)``.
    public nonisolated(nonsending) func pipeline(
        _ commands: [[RedisArgument]]
    ) async throws(RedisError) -> [RedisValue] {
        guard !commands.isEmpty else { return [] }
        return try await perform(Call(.pipeline(commands))).array ?? []
    }

    /// Runs a script by its name, and sends it along only when the server does not know it yet.
    /// - Throws: as ``send(_:)``.
    public nonisolated(nonsending) func run(
        _ script: RedisScript, keys: [RedisArgument], arguments: [RedisArgument] = []
    ) async throws(RedisError) -> RedisValue {
        do throws(RedisError) {
            return try await send(script.evalsha(keys, arguments))
        } catch {
            // Nothing of the script has run.
            guard error.code == .server("NOSCRIPT") else { throw error }
            return try await send(script.eval(keys, arguments))
        }
    }

    /// Runs a script on several sets of keys in one go; as ``pipeline(_:)`` it gives a reply for each.
    /// - Throws: as ``pipeline(_:)``.
    public nonisolated(nonsending) func run(
        _ script: RedisScript, onEach sets: [(keys: [RedisArgument], arguments: [RedisArgument])]
    ) async throws(RedisError) -> [RedisValue] {
        var replies = try await pipeline(sets.map { script.evalsha($0.keys, $0.arguments) })
        for index in replies.indices {
            // As above.
            guard case .error(let error) = replies[index], error.code == .server("NOSCRIPT") else { continue }
            replies[index] = try await run(script, keys: sets[index].keys, arguments: sets[index].arguments)
        }
        return replies
    }

    /// Ends the connections; commands under way and later ones fail with ``RedisError/Code/closed``. Returns when the client's
    /// thread is gone. A second call does nothing.
    public func close() async { await desk.close { $0.refuse(.closed) } }

    private nonisolated(nonsending) func perform(_ call: Call) async throws(RedisError) -> RedisValue {
        if Task.isCancelled { throw .cancelled }
        return try await withCancellableContinuation { continuation in
            call.wait(continuation)
            if !desk.post(.call(call)) { call.answer(.failure(.closed)) }
        } onCancel: {
            desk.post(.cancellation(call))
        }.get()
    }
}

extension RedisError {
    /// What callers of a closed client are told.
    static let closed = RedisError(.closed, "the client is closed")
    /// What callers are told whose task was cancelled.
    static let cancelled = RedisError(.cancelled, "the task was cancelled")
}

extension RedisClient {
    /// What one master had to say.
    public struct Word: Sendable {
        /// Who said it.
        public let master: RedisAddress
        /// Its reply, or what kept that from coming.
        public let outcome: Result<RedisValue, RedisError>
    }

    /// Sends one command to every master that serves slots, all at once; to a single server as ``send(_:)`` does.
    /// - Returns: a word of each, in the order of ``masters()``.
    /// - Throws: what kept the masters from being known.
    public func sendToEveryMaster(_ command: [RedisArgument]) async throws(RedisError) -> [Word] {
        let masters = try await masters()
        return await withTaskGroup(of: (Int, Word).self) { group in
            for (index, master) in masters.enumerated() {
                group.addTask {
                    let outcome: Result<RedisValue, RedisError>
                    do throws(RedisError) {
                        outcome = .success(try await self.send(command, to: master))
                    } catch {
                        outcome = .failure(error)
                    }
                    return (index, Word(master: master, outcome: outcome))
                }
            }
            var words: [Int: Word] = [:]
            for await (index, word) in group { words[index] = word }
            return masters.indices.compactMap { words[$0] }
        }
    }
}

/// The service of a client that talks to one server: the one that there is, or the master that sentinels name.
final class DirectLine: CallService {
    private let session: Session<CommandQueue>

    init(
        _ guide: any Guide, followsMaster: Bool, _ settings: RedisSettings, on loop: EventLoop,
        onStateChange: @escaping @Sendable (RedisState) -> Void
    ) {
        let watcher = followsMaster ? MasterWatcher() : nil
        session = Session(
            CommandQueue(settings, on: loop, under: watcher), with: guide, settings, on: loop,
            onStateChange: onStateChange)
        watcher?.session = session
    }

    func open() { session.connect() }
    func accept(_ call: Call, _ now: ContinuousClock.Instant) { session.talk.accept(call, now) }
    func flush(_ now: ContinuousClock.Instant) { session.talk.flush(now) }
    func close() { session.close() }
    var masters: [RedisAddress] { session.server.map { [$0.address] } ?? [] }
}

/// Looks for another master when the one that sentinels named says that it is none any more.
private final class MasterWatcher: Overseer {
    weak var session: Session<CommandQueue>?

    func opened() {}
    func lost(_ error: RedisError) {}

    func takesOver(_ call: Call, insteadOf outcome: Call.Outcome) -> Bool {
        let isReadOnly =
            switch outcome {
            case .failure(let error): error.isReadOnly
            case .success(.array(let replies)):
                replies.contains { if case .error(let error) = $0 { error.isReadOnly } else { false } }
            case .success: false
            }
        if isReadOnly {
            // The caller's own answer comes first: nothing of it has run.
            call.answer(outcome)
            session?.startAnew(RedisError(.unavailable, "the master is a replica now"))
        }
        return isReadOnly
    }
}

extension RedisError {
    fileprivate var isReadOnly: Bool { code == .server("READONLY") }
}

/// How patient a client is.
public struct RedisSettings: Hashable, Sendable {
    /// How long a command may wait for its reply. A server that has said nothing at all for so long is given up and connected
    /// to anew. Commands that block on purpose (BLPOP) have no place on a shared connection.
    public var commandTimeout: Duration = .seconds(2)
    /// How long one attempt to connect may take, with TLS, AUTH and SELECT.
    public var connectTimeout: Duration = .seconds(2)
    /// For how long after a connection was lost commands wait for the next one; at the start they wait for ``connectTimeout`` besides. Later
    /// they fail at once, until there is one.
    public var outageGrace: Duration = .milliseconds(500)
    /// The rest between attempts to connect: doubled after each, jittered, within these bounds.
    public var reconnectDelay: ClosedRange<Duration> = .milliseconds(50)...(.seconds(5))

    var reconnectBackoff: Backoff { reconnectBackoff(atMost: reconnectDelay.upperBound) }

    func reconnectBackoff(atMost maximum: Duration) -> Backoff {
        Backoff(initial: reconnectDelay.lowerBound, maximum: max(reconnectDelay.lowerBound, maximum), jitter: 0.5)
    }

    /// A subscriber that has heard nothing for so long asks the server for a sign of life.
    public var idlePing: Duration = .seconds(10)
    /// A PEM file of certificate authorities to trust with `rediss://` in place of the system's.
    public var authorities: String?

    /// The defaults.
    public init() {}
}

/// Whether a client has its connections. Told once per change.
public enum RedisState: Hashable, Sendable {
    /// Connected, logged in and ready. A cluster is when its map is known and no master that was tried is away.
    case connected
    /// Some masters of a cluster are away, which are tried again; the others serve on.
    case impaired(RedisError)
    /// The connection was lost, or the first attempt failed; no master of a cluster is there. It is tried again until the client is
    /// closed.
    case lost(RedisError)
}

/// hiredis as a whole.
public enum RedisLibrary {
    /// The version that this was built with, such as `0.14.1`: the library cannot be asked, and another series is
    /// another file.
    public static var version: String { "\(HIREDIS_MAJOR).\(HIREDIS_MINOR).\(HIREDIS_PATCH)" }
    /// Whether it can do TLS.
    public static var hasTLS: Bool { Connection.hasTLS }
}
