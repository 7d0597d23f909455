import Formats
import HalcyonCluster
import HalcyonModel

/// Decides when failed jobs are retried, by the retry policy and the configured retry topics, and where jobs wait for
/// their start.
struct RetryScheduler: Sendable {
    let policy: RetryPolicy
    /// The delay of each retry topic, in seconds.
    private let delays: [Double]
    /// The delay of each delay topic, in seconds.
    private let startDelays: [Double]

    init(_ policy: RetryPolicy, _ topics: Topics) {
        self.policy = policy
        delays = topics.retryDelays.map { $0 / .seconds(1) }
        startDelays = topics.startDelays.map { $0 / .seconds(1) }
    }

    /// Returns where and how long a job waits that may not start yet. If the time is longer than all delays, the job
    /// waits again afterwards.
    ///
    /// In all delay topics but the first, all jobs wait equally long. They become due in their order, and none waits
    /// for one before it.
    /// - Parameter seconds: The time until the job may start.
    /// - Returns: The index of the delay topic; nil if the job waits in the worker, because the time is short.
    func delay(for seconds: Double) -> (topic: Int, seconds: Double)? {
        guard seconds > policy.inProcess else { return nil }
        let topic = startDelays.lastIndex { $0 <= seconds } ?? 0
        return (topic, min(seconds, startDelays[topic]))
    }

    func decide(_ failed: FailedJob, _ job: JobContext) -> RetryPolicy.Decision {
        decide(failed.failure, failed.history, job, policy)
    }

    /// Decides about a job that was postponed before its attempt was complete, because its target accepts no request.
    ///
    /// It waits in a retry topic, where it occupies nothing that other jobs need, or in the worker if there are no
    /// retry topics. Only the budget and the deadline end it.
    func decidePostponed(_ failed: FailedJob, _ job: JobContext) -> RetryPolicy.Decision {
        var patient = policy
        patient.attempts = .max
        if delays.isEmpty { patient.inProcess = .infinity }
        return decide(failed.failure.retryAfter(atLeast: policy.inProcess), failed.history, job, patient)
    }

    private func decide(
        _ failure: JobError, _ history: AttemptHistory, _ job: JobContext, _ policy: RetryPolicy
    ) -> RetryPolicy.Decision {
        policy.decide(
            failure,
            RetryPolicy.RetryContext(
                attempts: max(1, history.count), elapsed: history.elapsed(at: Timestamp.now.milliseconds),
                left: job.worthRetrying, topic: job.retry?.topic),
            delays: delays)
    }
}

/// The error of an attempt that was not completed, because the target of an upload or the result store accepts no
/// request at the moment. It does not count.
struct PostponedAttempt: Error {
    let failure: JobError
}

/// The attempts at a job, with their history, number and timings.
struct JobAttempts {
    /// The number of the current attempt, counted from 1 across all workers.
    private(set) var number: Int
    private var history: AttemptHistory
    private var timings = Timings()
    private var start = ContinuousClock.now

    init(_ job: JobContext) {
        // The first attempt begins when the wait for the start is over.
        let retry = job.retry.flatMap { $0.topic == nil ? nil : $0 }
        history = retry?.message.history ?? AttemptHistory(began: Timestamp.now.milliseconds)
        number = history.count
    }

    /// Starts the clock. The time until now counts as queued, not towards the total.
    mutating func queued(_ job: JobContext) {
        start = .now
        timings[.queued] = job.queued
        job.trace?.queued(until: start)
    }

    mutating func begin() { number += 1 }

    /// Completes the event of a successful attempt.
    mutating func succeeded(_ ready: inout Ready) {
        ready.attempts = number
        timings.merge(ready.timings)
        timings[.total] = start.duration(to: .now).milliseconds
        ready.timings = timings
    }

    mutating func failed(_ failure: JobError, _ job: JobContext) -> FailedJob {
        history.add(failure, at: Timestamp.now.milliseconds)
        return FailedJob(failure: failure, history: history, timings: measured(job))
    }

    /// Takes back an attempt that was postponed. It does not count.
    mutating func postponed(_ failure: JobError, _ job: JobContext) -> FailedJob {
        number -= 1
        return FailedJob(failure: failure, history: history, timings: measured(job))
    }

    /// Returns the durations of the stages that an attempt without results has completed, or in which it failed.
    private func measured(_ job: JobContext) -> Timings {
        var measured = timings
        measured.merge(job.takeTimings())
        measured[.total] = start.duration(to: .now).milliseconds
        return measured
    }

    /// Returns the outcome of a job that was cancelled or revoked.
    func cancelled(by error: any Error, _ job: JobContext) -> Outcome {
        switch error {
        case JobCancellationReason.expired:
            let failure = job.expired(after: history.attempts.last)
            return .ended(.failed(failure, attempts: max(1, number), timings: measured(job)))
        case JobCancellationReason.cancelled: return .ended(.cancelled)
        case JobCancellationReason.superseded(let generation): return .ended(.superseded(by: generation))
        default: return .handedBack
        }
    }
}
