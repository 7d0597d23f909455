import HalcyonModel

/// What comes of a job that a worker took.
enum Outcome: Sendable {
    /// It ends: ready, cancelled or superseded, or as nobody wants it any more.
    case ended(Event.Body)
    /// It failed, and is not tried again.
    case gaveUp(FailedJob, GivingUp)
    /// It failed, and is tried again after so many seconds, through the topic at this place of the list.
    case postponed(FailedJob, topic: Int, after: Double)
    /// It is another worker's: this one tells nothing of it.
    case handedBack
}

/// A job whose last attempt failed.
struct FailedJob: Sendable {
    /// What it ended with.
    let failure: Failure
    /// All attempts.
    let history: AttemptHistory
    /// How long what took.
    let timings: Timings

    /// Whether the message is put aside when it is given up for this reason, for somebody to look at and to replay.
    func isPutAside(_ reason: GivingUp) -> Bool { reason.isForLater || failure.code == .poison }

    /// What is told of it when it is not tried again.
    var body: Event.Body { .failed(failure, attempts: history.count, timings: timings) }
}
