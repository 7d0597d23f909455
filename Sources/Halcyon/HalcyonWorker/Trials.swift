import CivilTime
import HalcyonCluster
import HalcyonModel

/// Tries a job as often as the policy has the worker try it, and says what is to come of it.
///
/// A job that waits to be tried again holds a place of its partition's window and nothing else. Who recalls, cancels or supersedes it ends
/// that wait at once.
struct Trials: Sendable {
    let line: Line
    let work: Work
    let taken: TakenRecord

    func run() async -> Outcome {
        var history =
            work.retry?.message.history ?? AttemptHistory(began: Timestamp.now.milliseconds)
        var tries = history.count
        var timings = Timings()
        var start = ContinuousClock.now
        do {
            if let retry = work.retry {
                try await wait(for: line.retrying.left(retry))
                start = .now
            }
            timings[.queued] = work.queued
            work.trace?.queued(until: start)
            while true {
                try work.checkDeadline()
                tries += 1
                let failure: Failure
                do {
                    var ready = try await line.attempt(work, taken, number: tries)
                    ready.attempts = tries
                    ready.warnings = work.warnings
                    timings.merge(ready.timings)
                    timings[.total] = start.duration(to: .now).milliseconds
                    ready.timings = timings
                    return .ended(.ready(ready))
                } catch let error where !(error is Detachment || error is CancellationError) {
                    failure = error as? Failure ?? Failure(.internal, "\(error)")
                }
                history.add(failure, at: Timestamp.now.milliseconds)
                timings[.total] = start.duration(to: .now).milliseconds
                let failed = FailedJob(failure: failure, history: history, timings: timings)
                switch line.retrying.decide(failed, work) {
                case .giveUp(let reason): return .gaveUp(failed, reason)
                case .later(let topic, let seconds): return .postponed(failed, topic: topic, after: seconds)
                case .now(let seconds):
                    line.willRetry(work, failed, after: seconds)
                    try await wait(for: seconds)
                }
            }
        } catch {
            timings[.total] = start.duration(to: .now).milliseconds
            switch error {
            case Detachment.expired:
                let failure = work.expired(after: history.attempts.last)
                return .ended(.failed(failure, attempts: max(1, tries), timings: timings))
            case Detachment.cancelled: return .ended(.cancelled)
            case Detachment.superseded(let generation): return .ended(.superseded(by: generation))
            default: return .handedBack
            }
        }
    }

    /// - Throws: ``Detachment``; `CancellationError`.
    private func wait(for seconds: Double) async throws {
        guard seconds > 0 else { return }
        guard taken.rest() else { throw Detachment.recalled }
        try await line.wanted.underWay.run(work.identity, until: work.deadlineInstant) { [taken] job in
            taken.onRecall { job.detach(.recalled) }
            try await Task.sleep(for: .seconds(seconds))
        }
    }
}

/// When jobs that failed are tried again, by the policy and the topics there are.
struct Retrying: Sendable {
    let policy: RetryPolicy
    /// Seconds, as long as jobs wait at most in each of the topics.
    private let delays: [Double]

    init(_ policy: RetryPolicy, _ topics: Topics) {
        self.policy = policy
        delays = topics.retryDelays.map { $0 / .seconds(1) }
    }

    func decide(_ failed: FailedJob, _ work: Work) -> RetryPolicy.Decision {
        policy.decide(
            failed.failure,
            RetryPolicy.Trial(
                attempts: failed.history.count, elapsed: failed.history.elapsed(at: Timestamp.now.milliseconds),
                left: work.worthRetrying, topic: work.retry?.topic),
            delays: delays)
    }

    /// Seconds until a job is due that came through a topic.
    func left(_ retry: Work.Retry) -> Double { retry.message.left(atMost: delays[retry.topic]) }
}
