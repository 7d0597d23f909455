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

    /// Who waits for the answer.
    private enum Caller {
        case task(Continuation)
        /// A pipeline of which this is a piece.
        case gathering(Gathering, Range<Int>)
        /// Somebody on the loop.
        case resident((Outcome) -> Void)
    }

    let content: Content
    /// The node that the caller named; nil for the one that has the keys.
    let node: RedisAddress?
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
    /// Nil once the caller has its answer, whatever still comes from the server.
    private var caller: Caller?
    private var replies: [RedisValue] = []

    /// A call that a task will ``wait(_:)`` for.
    init(_ content: Content, to node: RedisAddress? = nil) {
        self.content = content
        self.node = node
    }

    /// A call of the loop's own.
    init(_ command: [RedisArgument], to node: RedisAddress? = nil, _ answered: @escaping (Outcome) -> Void) {
        content = .command(command)
        self.node = node
        caller = .resident(answered)
    }

    /// A piece of a pipeline.
    init(_ content: Content, to destination: Destination, for gathering: Gathering, at range: Range<Int>) {
        self.content = content
        self.destination = destination
        node = nil
        caller = .gathering(gathering, range)
    }

    /// Whether nobody waits for an answer.
    var isAnswered: Bool {
        switch caller {
        case nil: true
        case .gathering(let gathering, _): gathering.isAnswered
        case .task, .resident: false
        }
    }

    /// The caller waits from now on.
    func wait(_ continuation: Continuation) { caller = .task(continuation) }

    /// Answers the caller, unless that has been done.
    func answer(_ outcome: Outcome) {
        let caller = caller
        self.caller = nil
        switch caller {
        case nil: break
        case .task(let continuation): continuation.resume(returning: outcome)
        case .gathering(let gathering, let range): gathering.put(outcome, at: range)
        case .resident(let answered): answered(outcome)
        }
    }

    /// Takes the next reply that belongs to this call, and gives back what it comes to if it was the last.
    func receive(_ reply: RedisValue) -> Outcome? {
        switch content {
        case .command:
            if case .error(let error) = reply { return .failure(error) }
            return .success(reply)
        case .pipeline(let commands):
            replies.append(reply)
            guard replies.count == commands.count else { return nil }
            defer { replies = [] }
            return .success(.array(replies))
        }
    }
}
