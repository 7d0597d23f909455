import HalcyonCluster
import HalcyonCoding
import HalcyonModel
import Redis

// Jobs whose preset this worker does not have.
extension JobPipeline {
    /// Loads the presets from Redis and decodes a job again, if this worker does not have its preset or only an older
    /// version.
    ///
    /// A job whose preset does not exist in Redis either is invalid. If Redis is unavailable, has only an older version
    /// than the job requires, or may have lost its presets, the job is retried like after any other transient error.
    /// - Returns: The decoded record; nil if the job has failed, was postponed or was returned to the queue.
    func withPreset(_ decoded: DecodedRecord, _ delivery: JobDelivery) async -> DecodedRecord? {
        guard case .refused(let refusal, let trace) = decoded, let missing = refusal.missingPreset else {
            return decoded
        }
        let job: JobContext
        do throws(InvalidJobError) {
            job = try decoder.decodeIdentity(delivery.record, trace)
        } catch {
            return .refused(error, trace)
        }
        var attempts = JobAttempts(job)
        var outcome: Outcome?
        do {
            if let retry = job.retry { try await wait(for: retry.left, job, after: attempts.number, delivery) }
            while outcome == nil {
                try await cancellations.checkBeforeStart(job.identity)
                try job.checkDeadline()
                attempts.begin()
                let error: JobError
                do throws(RedisError) {
                    try await presets.reload()
                    let record = decode(delivery.record, trace)
                    guard case .refused(let refusal, _) = record, let missing = refusal.missingPreset,
                        missing.known != nil || presets.mayLackLostPresets
                    else { return record }
                    error = JobError(.internal, refusal.failure.message)
                } catch let cause {
                    error = JobError(
                        .internal,
                        "preset: \(missing.reference.name) is not known to this worker, and Redis is unavailable",
                        cause: cause)
                }
                outcome = try await retry(attempts.failed(error, job), job, after: attempts.number, delivery)
            }
        } catch {
            outcome = attempts.cancelled(by: error, job)
        }
        await publish(outcome ?? .handedBack, job, delivery)
        return nil
    }

    /// Waits for the next attempt.
    /// - Returns: The outcome if this worker makes no further attempt; otherwise nil.
    /// - Throws: ``JobCancellationReason`` or `CancellationError`.
    private func retry(
        _ failed: FailedJob, _ job: JobContext, after attempt: Int, _ delivery: JobDelivery
    ) async throws -> Outcome? {
        switch retries.decide(failed, job) {
        case .giveUp(let reason): return .gaveUp(failed, reason)
        case .later(let topic, let seconds): return .postponed(failed, topic: topic, after: seconds)
        case .now(let seconds):
            report.willRetry(job, failed, after: seconds)
            try await wait(for: seconds, job, after: attempt, delivery)
            return nil
        }
    }
}
