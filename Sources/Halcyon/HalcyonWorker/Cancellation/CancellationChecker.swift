import HalcyonCluster

/// Checks whether anybody still wants a job.
struct CancellationChecker: Sendable {
    let activeJobs: ActiveJobs
    let slots: SlotBook
    let control: ControlReader

    /// Checks before anything is done for a job, and claims its slot.
    /// - Throws: ``JobCancellationReason`` if nobody wants it.
    func checkBeforeStart(_ job: JobIdentity) async throws {
        // Messages from before this worker began count too.
        await control.caughtUp()
        if activeJobs.isCancelled(job) { throw JobCancellationReason.cancelled }
        guard let slot = job.slot else { return }
        if let newer = await slots.claim(slot) { throw JobCancellationReason.superseded(by: newer) }
    }

    /// Checks whether a newer job has the slot of this one: the message about it may have been missed.
    /// - Throws: ``JobCancellationReason`` `superseded`.
    func checkSuperseded(_ job: JobIdentity) async throws {
        guard let slot = job.slot else { return }
        if let newer = await slots.newer(than: slot) { throw JobCancellationReason.superseded(by: newer) }
    }
}
