/// A command, or several sent as one, from the caller to its reply.
///
/// `@unchecked Sendable`: the caller makes it and hands it in; from then on it is touched on the loop's thread alone, so a
/// cancellation is a letter to the loop and needs no lock. Before the call has come there, a cancellation touches nothing but
/// ``isHandedIn``, which only the loop sets.
final class Call: @unchecked Sendable {
    typealias Continuation = CheckedContinuation<Result<RedisValue, RedisError>, Never>

    enum Content {
        case command([RedisArgument])
        /// Answered by one array with a reply each.
        case pipeline([[RedisArgument]])
    }

    let content: Content
    /// Whether the loop has the call.
    var isHandedIn = false
    /// Nil once the caller has its answer, whatever still comes from the server.
    private var caller: Continuation?
    private var replies: [RedisValue] = []
    /// When the caller has waited long enough; set when the call is sent.
    var deadline = ContinuousClock.now

    init(_ content: Content) { self.content = content }

    /// Whether the caller has been answered.
    var isAnswered: Bool { caller == nil }

    /// The caller waits from now on.
    func wait(_ continuation: Continuation) { caller = continuation }

    /// Answers the caller, unless that has been done.
    func answer(_ result: Result<RedisValue, RedisError>) {
        caller?.resume(returning: result)
        caller = nil
    }

    /// Takes the next reply that belongs to this call. True when it was the last.
    func receive(_ reply: RedisValue) -> Bool {
        switch content {
        case .command:
            if case .error(let error) = reply { answer(.failure(error)) } else { answer(.success(reply)) }
            return true
        case .pipeline(let commands):
            replies.append(reply)
            guard replies.count == commands.count else { return false }
            answer(.success(.array(replies)))
            return true
        }
    }
}
