/// What a client posts to its loop.
enum ClientLetter: Sendable {
    case call(Call)
    case cancellation(Call)
    /// Who the masters are.
    case masters(CheckedContinuation<Result<[RedisAddress], RedisError>, Never>)

    /// Answers with an error without having come to the loop.
    func refuse(_ error: RedisError) {
        switch self {
        case .call(let call): call.answer(.failure(error))
        case .cancellation: break
        case .masters(let continuation): continuation.resume(returning: .failure(error))
        }
    }
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
            case .masters(let continuation):
                // Once somebody has answered, the masters are known.
                accept(
                    Call(["PING"]) { [weak self] outcome in
                        continuation.resume(returning: outcome.map { _ in self?.masters ?? [] })
                    }, now)
            }
        }
        flush(now)
    }
}
