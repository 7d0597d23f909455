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
