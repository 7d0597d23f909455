import Threads

/// A Redis client: one connection that any number of tasks share.
///
/// Commands given at the same time are pipelined: they leave in one write, and each caller is resumed by its own reply. The
/// connection is kept for ever: lost, it is made anew, after a rest that grows with each failure. What was under way fails then;
/// nothing is ever sent twice.
///
/// ``close()`` must be called in the end: it ends the thread that serves the connection.
public final class RedisClient: Sendable {
    private let loop: EventLoop
    private let mailbox = Mailbox<CommandQueue.Letter>()
    private let session: Session<CommandQueue>

    /// Begins to connect, and returns at once.
    /// - Parameters:
    ///   - onStateChange: told once per change whether there is a connection, on the client's thread: keep it short.
    public init(
        _ endpoint: RedisEndpoint, settings: RedisSettings = RedisSettings(),
        onStateChange: @escaping @Sendable (RedisState) -> Void = { _ in }
    ) {
        loop = EventLoop(name: "redis")
        let session = Session(
            CommandQueue(mailbox, settings, on: loop), with: endpoint, settings, on: loop, onStateChange: onStateChange)
        self.session = session
        loop.perform { session.assumeIsolated { $0.connect() } }
    }

    /// Sends one command and waits for its reply.
    ///
    /// Cancelling the task ends the wait at once; the server may run the command all the same, unless the task was cancelled
    /// before it came here.
    /// - Throws: ``RedisError/Code/server(_:)`` for an error reply, else what kept the reply from coming.
    public nonisolated(nonsending) func send(_ command: RedisArgument...) async throws(RedisError) -> RedisValue {
        try await send(command)
    }

    /// Sends one command, given as an array, and waits for its reply.
    /// - Throws: as ``send(_:)``.
    public nonisolated(nonsending) func send(_ command: [RedisArgument]) async throws(RedisError) -> RedisValue {
        try await perform(.command(command))
    }

    /// Sends several commands one right after the other, with none of another task between them, and waits for all replies.
    ///
    /// Between `["MULTI"]` and `["EXEC"]` they are a transaction, whose results are EXEC's array.
    /// - Returns: a reply for each command; an error reply is a ``RedisValue/error(_:)`` in its place.
    /// - Throws: what kept the replies from coming.
    public nonisolated(nonsending) func pipeline(
        _ commands: [[RedisArgument]]
    ) async throws(RedisError) -> [RedisValue] {
        guard !commands.isEmpty else { return [] }
        return try await perform(.pipeline(commands)).array ?? []
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

    /// Ends the connection; commands under way and later ones fail with ``RedisError/Code/closed``. Returns when the client's
    /// thread is gone. A second call does nothing.
    public func close() async {
        for case .call(let call) in mailbox.close() { call.answer(.failure(.closed)) }
        loop.perform { [session] in session.assumeIsolated { $0.close() } }
        await loop.stopped()
    }

    private nonisolated(nonsending) func perform(_ content: Call.Content) async throws(RedisError) -> RedisValue {
        if Task.isCancelled { throw .cancelled }
        let call = Call(content)
        return try await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                call.wait(continuation)
                if !post(.call(call)) { call.answer(.failure(.closed)) }
                // One posted before the call was passed over.
                if Task.isCancelled { post(.cancellation(call)) }
            }
        } onCancel: {
            post(.cancellation(call))
        }.get()
    }

    /// False when the client is closed.
    @discardableResult
    private func post(_ letter: CommandQueue.Letter) -> Bool {
        switch mailbox.post(letter) {
        case .first:
            loop.perform { [session] in session.assumeIsolated { $0.talk.readMail() } }
            return true
        case .queued: return true
        case .closed: return false
        }
    }
}

extension RedisError {
    /// What callers of a closed client are told.
    static let closed = RedisError(.closed, "the client is closed")
    /// What callers are told whose task was cancelled.
    static let cancelled = RedisError(.cancelled, "the task was cancelled")
}

extension EventLoop {
    /// Ends the loop's thread and waits for it, on another thread.
    func stopped() async {
        await withCheckedContinuation { continuation in
            _ = WorkThread(name: "redis-stop", stackSize: 1 << 16) {
                self.stop()
                continuation.resume()
            }
        }
    }
}
