import HalcyonModel
import Telemetry

/// What became of a job on this worker, as its span says it.
struct JobEnd {
    /// `ready`, `failed`, `postponed`, `handed_back` and so on.
    let outcome: String
    /// Why it failed.
    var code: FailureCode?
    private var more = SpanAttributes()

    /// Another worker does it.
    static let handedBack = JobEnd("handed_back")

    /// The message was no job that can be done.
    static func refused(_ code: FailureCode) -> JobEnd { JobEnd("refused", code) }

    private init(_ outcome: String, _ code: FailureCode? = nil) {
        self.outcome = outcome
        self.code = code
    }

    /// What was told of it.
    init(_ outcome: Outcome) {
        switch outcome {
        case .handedBack: self = .handedBack
        case .postponed(let failed, _, let seconds):
            self.init("postponed", failed.failure.code)
            more = [
                "halcyon.attempts": failed.history.count, "halcyon.retry.after_ms": Int((seconds * 1000).rounded()),
            ]
        case .gaveUp(let failed, _):
            self.init("failed", failed.failure.code)
            more = ["halcyon.attempts": failed.history.count]
        case .ended(let body):
            switch body {
            case .ready(let ready):
                self.init("ready")
                more = ["halcyon.origin": ready.origin.rawValue, "halcyon.attempts": ready.attempts]
            case .failed(let failure, let attempts, _):
                self.init("failed", failure.code)
                more = ["halcyon.attempts": attempts]
            case .cancelled: self.init("cancelled")
            case .superseded: self.init("superseded")
            case .started, .progress, .purged: preconditionFailure("no job ends with that")
            }
        }
    }

    /// Whether somebody was told.
    var isTold: Bool { outcome != Self.handedBack.outcome }

    /// What the job's span says of it.
    var attributes: SpanAttributes {
        var all: SpanAttributes = ["halcyon.outcome": outcome, "error.type": code?.rawValue]
        all.merge(more)
        return all
    }
}
