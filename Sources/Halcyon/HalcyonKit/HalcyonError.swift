import Foundation

/// Why something was not done.
public enum HalcyonError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The gateway refused it.
    case problem(Problem)
    /// The job failed.
    case jobFailed(ImageEvent.Failed)
    /// Somebody cancelled the job.
    case jobCancelled(id: String)
    /// A job of a higher generation is for the same slot.
    case jobSuperseded(id: String, by: Int)
    /// The job did not end within ``ClientOptions/jobTime``.
    case jobLate(id: String)
    /// No gateway answered; the text says what the connection said last.
    case unreachable(String)
    /// What came is larger than the limit, in bytes.
    case tooLarge(limit: Int)
    /// What answered is no gateway, or one that is not understood here.
    case notUnderstood(String)

    /// For people.
    public var description: String {
        switch self {
        case .problem(let problem): "\(problem.title) (\(problem.status)): \(problem.detail)"
        case .jobFailed(let failure): "\(failure.code.rawValue): \(failure.message)"
        case .jobCancelled(let id): "the job \(id) was cancelled"
        case .jobSuperseded(let id, let generation): "the job \(id) was superseded by generation \(generation)"
        case .jobLate(let id): "the job \(id) did not end in time"
        case .unreachable(let reason): "no gateway answers: \(reason)"
        case .tooLarge(let limit): "the answer is larger than \(limit) bytes"
        case .notUnderstood(let what): "the answer is not understood: \(what)"
        }
    }

    /// Whether the same may succeed in a while.
    public var isTransient: Bool {
        switch self {
        case .problem(let problem): problem.isTransient
        case .jobFailed(let failure): failure.retryable
        case .unreachable, .jobLate: true
        default: false
        }
    }
}

extension HalcyonError: LocalizedError {
    /// For people.
    public var errorDescription: String? { description }
}
