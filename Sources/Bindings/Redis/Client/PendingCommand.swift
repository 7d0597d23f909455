/// A command or pipeline, from the call to its reply.
///
/// `@unchecked Sendable`: the caller creates it and hands it over. From then on only the loop's thread accesses it, so
/// a cancellation is a message to the loop and needs no lock. Before the command has reached the loop, a cancellation
/// only reads ``isHandedIn``, which only the loop sets.
final class PendingCommand: @unchecked Sendable {
    typealias Outcome = Result<RedisValue, RedisError>
    typealias Continuation = CheckedContinuation<Outcome, Never>

    enum Content {
        case command([RedisArgument])
        /// Answered by one array that contains a reply for each command.
        case pipeline([[RedisArgument]])
    }

    /// A receiver of the reply that is not a task.
    private enum Other {
        /// A pipeline that this command is a part of.
        case gathering(PipelineCollector, Range<Int>)
        /// A callback on the loop.
        case resident((Outcome) -> Void)
    }

    let content: Content
    /// The node that the caller named, or nil for the node that serves the keys.
    var node: RedisAddress? { named?.address }
    private let named: NamedNode?
    /// True if the loop has received the command.
    var isHandedIn = false
    /// The time at which the command times out; set when the command is sent.
    var deadline = ContinuousClock.now
    /// The routing target in a cluster.
    var destination = RoutingTarget.anyNode
    /// The redirections and retries that the command has left in a cluster.
    var detour = RedirectionBudget()
    /// True if ASKING must be sent before the command.
    var asksFirst = false
    /// A class, because most commands name no node and then need only a nil pointer.
    private final class NamedNode {
        let address: RedisAddress
        init(_ address: RedisAddress) { self.address = address }
    }

    /// The waiting task. Nil once it has its reply, even if the server still sends more. Not a case of ``Other``,
    /// because the size of a continuation is known only at run time, and copying such an enumeration is slow.
    private var caller: Continuation?
    /// Another receiver that waits for the reply; nil once it has been called.
    private var other: Other?
    private var replies: [RedisValue] = []

    /// Creates a command whose reply a task awaits with ``wait(_:)``.
    init(_ content: Content, to node: RedisAddress? = nil) {
        self.content = content
        named = node.map(NamedNode.init)
    }

    /// Creates a command that the loop itself sends.
    init(_ command: [RedisArgument], to node: RedisAddress? = nil, _ answered: @escaping (Outcome) -> Void) {
        content = .command(command)
        named = node.map(NamedNode.init)
        other = .resident(answered)
    }

    /// Creates a part of a pipeline.
    init(_ content: Content, to destination: RoutingTarget, for gathering: PipelineCollector, at range: Range<Int>) {
        self.content = content
        self.destination = destination
        named = nil
        other = .gathering(gathering, range)
    }

    /// True if no receiver waits for the reply.
    var isAnswered: Bool {
        if caller != nil { return false }
        switch other {
        case nil: return true
        case .gathering(let gathering, _): return gathering.isAnswered
        case .resident: return false
        }
    }

    /// Sets the continuation to resume with the reply.
    func wait(_ continuation: Continuation) { caller = continuation }

    /// Completes the command, unless that has been done.
    func answer(_ outcome: Outcome) {
        if let caller {
            self.caller = nil
            return caller.resume(returning: outcome)
        }
        guard let other else { return }
        self.other = nil
        switch other {
        case .gathering(let gathering, let range): gathering.put(outcome, at: range)
        case .resident(let answered): answered(outcome)
        }
    }

    /// Accepts the next reply to this command. Returns true if it was the last one.
    func receive(_ reply: RedisValue) -> Bool {
        guard case .pipeline(let commands) = content else { return true }
        replies.append(reply)
        return replies.count == commands.count
    }

    /// Returns the outcome of the command, given its last reply, which has been received.
    func extractOutcome(_ last: RedisValue) -> Outcome {
        guard case .command = content else {
            defer { replies = [] }
            return .success(.array(replies))
        }
        if case .error(let error) = last { return .failure(error) }
        return .success(last)
    }
}
