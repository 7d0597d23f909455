/// A command, or several sent as one, from the caller to its reply.
///
/// `@unchecked Sendable`: the caller makes it and hands it in; from then on it is touched on the loop's thread alone, so a
/// cancellation is a letter to the loop and needs no lock. Before the call has come there, a cancellation touches nothing but
/// ``isHandedIn``, which only the loop sets.
final class Call: @unchecked Sendable {
    typealias Outcome = Result<RedisValue, RedisError>
    typealias Continuation = CheckedContinuation<Outcome, Never>

    enum Content {
        case command([RedisArgument])
        /// Answered by one array with a reply each.
        case pipeline([[RedisArgument]])
    }

    /// Who waits for the answer, if it is no task.
    private enum Other {
        /// A pipeline of which this is a piece.
        case gathering(Gathering, Range<Int>)
        /// Somebody on the loop.
        case resident((Outcome) -> Void)
    }

    let content: Content
    /// The node that the caller named; nil for the one that has the keys.
    var node: RedisAddress? { named?.address }
    private let named: NamedNode?
    /// Whether the loop has the call.
    var isHandedIn = false
    /// When the caller has waited long enough; set when the call is sent.
    var deadline = ContinuousClock.now
    /// Where it goes in a cluster.
    var destination = Destination.anyNode
    /// What it has been through in a cluster.
    var detour = Detour()
    /// Whether the next server is to be told ASKING first.
    var asksFirst = false
    /// A class, for most calls name none, and then it costs next to nothing.
    private final class NamedNode {
        let address: RedisAddress
        init(_ address: RedisAddress) { self.address = address }
    }

    /// The task that waits. Nil once it has its answer, whatever still comes from the server. Not a case of ``Other``: the size of a
    /// continuation is known at run time alone, and copying such an enumeration is slow.
    private var caller: Continuation?
    /// Who else waits; nil once it has its answer.
    private var other: Other?
    private var replies: [RedisValue] = []

    /// A call that a task will ``wait(_:)`` for.
    init(_ content: Content, to node: RedisAddress? = nil) {
        self.content = content
        named = node.map(NamedNode.init)
    }

    /// A call of the loop's own.
    init(_ command: [RedisArgument], to node: RedisAddress? = nil, _ answered: @escaping (Outcome) -> Void) {
        content = .command(command)
        named = node.map(NamedNode.init)
        other = .resident(answered)
    }

    /// A piece of a pipeline.
    init(_ content: Content, to destination: Destination, for gathering: Gathering, at range: Range<Int>) {
        self.content = content
        self.destination = destination
        named = nil
        other = .gathering(gathering, range)
    }

    /// Whether nobody waits for an answer.
    var isAnswered: Bool {
        if caller != nil { return false }
        switch other {
        case nil: return true
        case .gathering(let gathering, _): return gathering.isAnswered
        case .resident: return false
        }
    }

    /// The caller waits from now on.
    func wait(_ continuation: Continuation) { caller = continuation }

    /// Answers the caller, unless that has been done.
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

    /// Takes the next reply that belongs to this call. True when it was the last.
    func receive(_ reply: RedisValue) -> Bool {
        guard case .pipeline(let commands) = content else { return true }
        replies.append(reply)
        return replies.count == commands.count
    }

    /// What the call comes to with its last reply, which has been received.
    func takeOutcome(_ last: RedisValue) -> Outcome {
        guard case .command = content else {
            defer { replies = [] }
            return .success(.array(replies))
        }
        if case .error(let error) = last { return .failure(error) }
        return .success(last)
    }
}
