import CHiredis
import Concurrency

/// A Redis client that any number of tasks can share. It connects to one server, to the primary that sentinels name, or
/// to a cluster, with the same interface for all three.
///
/// The client holds one connection to each server and uses one thread for all of them. Commands sent at the same time
/// are pipelined: they leave in one write, and each caller is resumed with its own reply. Lost connections are
/// re-established with exponential backoff. Commands in flight on a lost connection fail. The client never resends a
/// command that may have run.
///
/// In a cluster, each command is sent to the primary that serves its keys, which must all be in one hash slot. The
/// positions of keys are known for the commands of ``KeySpecification``. Redirections are followed, and the slot map is
/// refreshed when it changes. Commands without a key go to any primary. Commands about one server (`SCAN`, `INFO`,
/// `SCRIPT`, …) must name it with ``send(_:to:)``. If a primary is unavailable, only commands for that primary fail.
///
/// ``close()`` must be called in the end. It stops the thread that serves the connections.
public final class RedisClient: Sendable {
    private let loop: EventLoopChannel<ClientMessage>

    /// Starts to connect and returns immediately.
    /// - Parameters:
    ///   - settings: the timeouts; nil for the defaults with the timeout of the endpoint.
    ///   - onStateChange: callback for each change of the connection state. It runs on the client's thread and must
    ///     return quickly.
    public init(
        _ endpoint: RedisEndpoint, settings: RedisSettings? = nil,
        onStateChange: @escaping @Sendable (RedisState) -> Void = { _ in }
    ) {
        let settings = settings ?? RedisSettings(endpoint)
        loop = EventLoopChannel(thread: "redis") { loop in
            if case .cluster(let seeds) = endpoint.servers {
                return Cluster(seeds, endpoint.login, settings, on: loop, onStateChange: onStateChange)
            }
            return SingleNodeClient(
                endpoint.guide(settings, on: loop), followsMaster: endpoint.isBehindSentinels, settings, on: loop,
                onStateChange: onStateChange)
        }
    }

    /// Sends one command and waits for its reply.
    ///
    /// Cancelling the task ends the wait immediately. The server may still run the command, unless the task was
    /// cancelled before this call.
    /// - Throws: ``RedisError/Code/server(_:)`` for an error reply, ``RedisError/Code/misuse`` for a command that a
    ///   cluster cannot run as it is, or the error that prevented a reply.
    public nonisolated(nonsending) func send(_ command: RedisArgument...) async throws(RedisError) -> RedisValue {
        try await send(command)
    }

    /// Sends one command, given as an array, and waits for its reply.
    /// - Throws: the errors of ``send(_:)``.
    public nonisolated(nonsending) func send(_ command: [RedisArgument]) async throws(RedisError) -> RedisValue {
        try await perform(PendingCommand(.command(command)))
    }

    /// Sends one command to one node of a cluster, whatever its keys are, and waits for its reply. For a single server
    /// the node is ignored.
    /// - Throws: the errors of ``send(_:)``. Redirections are not followed and are thrown as errors.
    public nonisolated(nonsending) func send(
        _ command: [RedisArgument], to node: RedisAddress
    ) async throws(RedisError) -> RedisValue {
        try await perform(PendingCommand(.command(command), to: node))
    }

    /// Returns the primaries that serve hash slots, or the address of a single server. Waits for a connection as a
    /// command does.
    /// - Throws: the error that prevented the connection or the lookup.
    public nonisolated(nonsending) func masters() async throws(RedisError) -> [RedisAddress] {
        try await withCheckedContinuation { continuation in
            let message = ClientMessage.masters(PrimariesRequest(continuation))
            if !loop.post(message) { message.refuse(.closed) }
        }.get()
    }

    /// Calls a closure with the elements of a hash, set or sorted set, a page at a time.
    ///
    /// Elements that are there from the beginning to the end are returned at least once, others perhaps. A page is the
    /// work of half a millisecond, for which the server is blocked.
    /// - Parameters:
    ///   - command: The command up to the cursor: `["ZSCAN", key]`.
    ///   - body: The closure, which may change or remove the elements of its page.
    /// - Throws: The errors of ``send(_:)`` and of the closure.
    public nonisolated(nonsending) func scan(
        _ command: [RedisArgument], _ body: ([RedisValue]) async throws(RedisError) -> Void
    ) async throws(RedisError) {
        try await scan(command, [], on: nil, body)
    }

    /// Calls a closure with the keys of all primaries that match a pattern, as ``scan(_:_:)`` does with elements.
    /// - Parameters:
    ///   - pattern: The glob-style pattern of `MATCH`.
    ///   - body: The closure, which may change or remove the keys of its page.
    /// - Throws: The errors of ``masters()``, ``send(_:to:)`` and of the closure.
    public nonisolated(nonsending) func scanKeys(
        matching pattern: String, _ body: ([String]) async throws(RedisError) -> Void
    ) async throws(RedisError) {
        for primary in try await masters() {
            try await scan(["SCAN"], ["MATCH", .string(pattern)], on: primary) { (page) async throws(RedisError) in
                try await body(page.compactMap(\.string))
            }
        }
    }

    private nonisolated(nonsending) func scan(
        _ command: [RedisArgument], _ options: [RedisArgument], on node: RedisAddress?,
        _ body: ([RedisValue]) async throws(RedisError) -> Void
    ) async throws(RedisError) {
        var cursor = "0"
        repeat {
            let step = command + [.string(cursor)] + options + ["COUNT", 1000]
            let reply = if let node { try await send(step, to: node) } else { try await send(step) }
            guard let parts = reply.array, parts.count == 2, let next = parts[0].string, let page = parts[1].array
            else { throw RedisError(.protocolError, "unexpected reply to a scan: \(reply)") }
            cursor = next
            try await body(page)
        } while cursor != "0"
    }

    /// Sends several commands back to back, without commands of other tasks in between, and waits for all replies.
    ///
    /// Commands between `["MULTI"]` and `["EXEC"]` form a transaction. EXEC's reply is the array of its results.
    ///
    /// In a cluster, this holds for the commands of each hash slot separately. If one of several primaries is
    /// unavailable, each command for it is answered with a ``RedisValue/error(_:)``, and the others have their replies.
    /// - Returns: one reply for each command; a ``RedisValue/error(_:)`` for a command that failed.
    /// - Throws: the error that prevented all replies, or ``RedisError/Code/misuse`` as ``send(_:)`` does.
    public nonisolated(nonsending) func pipeline(
        _ commands: [[RedisArgument]]
    ) async throws(RedisError) -> [RedisValue] {
        guard !commands.isEmpty else { return [] }
        return try await perform(PendingCommand(.pipeline(commands))).array ?? []
    }

    /// Runs a script by its SHA-1, and sends its source only if the server does not have it yet.
    /// - Throws: the errors of ``send(_:)``.
    public nonisolated(nonsending) func run(
        _ script: RedisScript, keys: [RedisArgument], arguments: [RedisArgument] = []
    ) async throws(RedisError) -> RedisValue {
        do throws(RedisError) {
            return try await send(script.evalsha(keys, arguments))
        } catch {
            // NOSCRIPT means that no part of the script has run.
            guard error.code == .server("NOSCRIPT") else { throw error }
            return try await send(script.eval(keys, arguments))
        }
    }

    /// Runs a script once for each set of keys, in one pipeline, and returns a reply for each.
    /// - Throws: the errors of ``pipeline(_:)``.
    public nonisolated(nonsending) func run(
        _ script: RedisScript, onEach sets: [(keys: [RedisArgument], arguments: [RedisArgument])]
    ) async throws(RedisError) -> [RedisValue] {
        var replies = try await pipeline(sets.map { script.evalsha($0.keys, $0.arguments) })
        for index in replies.indices {
            // NOSCRIPT means that no part of the script has run.
            guard case .error(let error) = replies[index], error.code == .server("NOSCRIPT") else { continue }
            replies[index] = try await run(script, keys: sets[index].keys, arguments: sets[index].arguments)
        }
        return replies
    }

    /// Closes the connections. Commands in flight and later ones fail with ``RedisError/Code/closed``. Returns when the
    /// client's thread has exited. A second call has no effect.
    public func close() async { await loop.close { $0.refuse(.closed) } }

    private nonisolated(nonsending) func perform(_ call: PendingCommand) async throws(RedisError) -> RedisValue {
        if Task.isCancelled { throw .cancelled }
        return try await withCancellableContinuation { continuation in
            call.wait(continuation)
            if !loop.post(.call(call)) { call.answer(.failure(.closed)) }
        } onCancel: {
            loop.post(.cancellation(call))
        }.get()
    }
}

extension RedisError {
    /// The error for calls to a closed client.
    static let closed = RedisError(.closed, "the client is closed")
    /// The error for a cancelled task.
    static let cancelled = RedisError(.cancelled, "the task was cancelled")
}

extension RedisClient {
    /// The reply of one primary.
    public struct NodeReply: Sendable {
        /// The primary that sent the reply.
        public let master: RedisAddress
        /// The reply, or the error that prevented it.
        public let outcome: Result<RedisValue, RedisError>
    }

    /// Sends one command to all primaries that serve hash slots, concurrently. For a single server this is the same as
    /// ``send(_:)``.
    /// - Returns: the reply of each primary, in the order of ``masters()``.
    /// - Throws: the error that prevented the lookup of the primaries.
    public func sendToAllPrimaries(_ command: [RedisArgument]) async throws(RedisError) -> [NodeReply] {
        let masters = try await masters()
        return await withTaskGroup(of: (Int, NodeReply).self) { group in
            for (index, master) in masters.enumerated() {
                group.addTask {
                    let outcome: Result<RedisValue, RedisError>
                    do throws(RedisError) {
                        outcome = .success(try await self.send(command, to: master))
                    } catch {
                        outcome = .failure(error)
                    }
                    return (index, NodeReply(master: master, outcome: outcome))
                }
            }
            var words: [Int: NodeReply] = [:]
            for await (index, word) in group { words[index] = word }
            return masters.indices.compactMap { words[$0] }
        }
    }
}

/// The handler of a client that talks to one server: the only one, or the primary that sentinels name.
final class SingleNodeClient: CommandHandler {
    private let session: ReconnectingConnection<CommandQueue>

    init(
        _ guide: any EndpointResolver, followsMaster: Bool, _ settings: RedisSettings, on loop: EventLoop,
        onStateChange: @escaping @Sendable (RedisState) -> Void
    ) {
        let watcher = followsMaster ? PrimaryFailoverDelegate() : nil
        session = ReconnectingConnection(
            CommandQueue(settings, on: loop, under: watcher), with: guide, settings, on: loop,
            onStateChange: onStateChange)
        watcher?.session = session
    }

    func open() { session.connect() }
    func accept(_ call: PendingCommand, _ now: ContinuousClock.Instant) { session.talk.accept(call, now) }
    func flush(_ now: ContinuousClock.Instant) { session.talk.flush(now) }
    func close() { session.close() }
    var masters: [RedisAddress] { session.server.map { [$0.address] } ?? [] }
}

/// Looks for the new primary when the server that sentinels named has become a replica.
private final class PrimaryFailoverDelegate: CommandQueueDelegate {
    weak var session: ReconnectingConnection<CommandQueue>?

    func opened() {}
    func lost(_ error: RedisError) {}

    func adopts(_ call: PendingCommand, insteadOf outcome: PendingCommand.Outcome) -> Bool {
        let isReadOnly =
            switch outcome {
            case .failure(let error): error.isReadOnly
            case .success(.array(let replies)):
                replies.contains { if case .error(let error) = $0 { error.isReadOnly } else { false } }
            case .success: false
            }
        if isReadOnly {
            // The caller gets its error first. Nothing of the command has run.
            call.answer(outcome)
            session?.startAnew(RedisError(.unavailable, "server is no longer the primary"))
        }
        return isReadOnly
    }
}

extension RedisError {
    fileprivate var isReadOnly: Bool { code == .server("READONLY") }
}

/// The timeouts and retry settings of a client.
public struct RedisSettings: Hashable, Sendable {
    /// The longest time to wait for a reply. A connection on which the server has sent nothing for this long is closed
    /// and re-established. Do not send commands that block on purpose (BLPOP) on a shared connection.
    public var commandTimeout: Duration = .seconds(2)
    /// The timeout of one attempt to connect, including TLS, AUTH and SELECT.
    public var connectTimeout: Duration = .seconds(2)
    /// The time after the loss of a connection during which commands wait for the next one. At startup they wait for
    /// ``connectTimeout`` in addition. After that they fail immediately until there is a connection.
    public var outageGrace: Duration = .milliseconds(500)
    /// The bounds of the delay between attempts to connect. It doubles after each attempt and has jitter.
    public var reconnectDelay: ClosedRange<Duration> = .milliseconds(50)...(.seconds(5))

    var reconnectBackoff: Backoff { reconnectBackoff(upTo: reconnectDelay.upperBound) }

    func reconnectBackoff(upTo maximum: Duration) -> Backoff {
        Backoff(initial: reconnectDelay.lowerBound, maximum: max(reconnectDelay.lowerBound, maximum), jitter: 0.5)
    }

    /// The idle time after which a subscriber sends PING to check that the server is alive.
    public var idlePing: Duration = .seconds(10)
    /// A PEM file of certificate authorities to trust for `rediss://`, instead of those of the system.
    public var authorities: String?

    /// Creates settings with default values.
    public init() {}

    /// Creates settings with the timeout of an endpoint.
    init(_ endpoint: RedisEndpoint) {
        if let timeout = endpoint.timeout { commandTimeout = timeout }
    }
}

/// The state of a client's connections, reported once per change.
public enum RedisState: Hashable, Sendable {
    /// Connected, authenticated and ready. For a cluster: the slot map is known, and no primary that was tried is
    /// unavailable.
    case connected
    /// Some primaries of a cluster are unavailable and being retried. The others still serve commands.
    case impaired(RedisError)
    /// The connection was lost, or the first attempt failed. For a cluster: no primary is available. The client retries
    /// until it is closed.
    case lost(RedisError)
}

/// Properties of the hiredis library.
public enum RedisLibrary {
    /// The version of the headers that this was built with, such as `0.14.1`. hiredis has no function that returns its
    /// version, and another series has another file name.
    public static var version: String { "\(HIREDIS_MAJOR).\(HIREDIS_MINOR).\(HIREDIS_PATCH)" }
    /// True if hiredis was built with TLS support.
    public static var hasTLS: Bool { Connection.hasTLS }
}
