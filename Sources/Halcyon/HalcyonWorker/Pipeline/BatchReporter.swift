import Formats
import HalcyonCluster
import HalcyonCoding
import HalcyonModel

/// Reports the ends of jobs of batches, after their events were published.
struct BatchReporter: Sendable {
    let tracker: BatchTracker

    func ended(_ job: JobContext, _ outcome: Outcome) {
        guard let batch = job.job.batch else { return }
        switch outcome {
        case .handedBack, .postponed: break
        case .ended(.ready): report(batch, job.job.id, .ready)
        case .ended(.cancelled): report(batch, job.job.id, .cancelled)
        case .ended(.superseded): report(batch, job.job.id, .superseded)
        case .ended(.failed(let failure, _, _)): report(batch, job.job.id, .failed, failure, job.origin)
        case .gaveUp(let failed, _): report(batch, job.job.id, .failed, failed.failure, job.origin)
        case .ended(.started), .ended(.progress), .ended(.purged): break
        }
    }

    func refused(_ refusal: InvalidJobError, _ origin: OriginalRecord) {
        guard let batch = refusal.batch else { return }
        report(batch, refusal.id ?? origin.coordinates, .failed, refusal.failure, origin)
    }

    private func report(
        _ batch: BatchMembership, _ job: String, _ outcome: Event.Kind, _ failure: JobError? = nil,
        _ origin: OriginalRecord? = nil
    ) {
        let failure = failure.map {
            BatchFailure(
                job: job, index: batch.index, code: $0.code.rawValue, message: $0.message,
                record: origin?.coordinates ?? "")
        }
        tracker.ended(
            BatchEnd(batch, job: job, outcome: outcome, failure: failure, time: Timestamp.now.milliseconds))
    }
}
