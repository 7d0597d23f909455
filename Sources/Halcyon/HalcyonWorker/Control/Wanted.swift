import HalcyonCluster

/// Whether anybody still wants a job.
struct Wanted: Sendable {
    let underWay: JobsUnderWay
    let slots: SlotBook
    let control: ControlReader

    /// Asks before anything is done for a job, and claims its slot.
    /// - Throws: ``Detachment`` when nobody does.
    func begin(_ job: JobIdentity) async throws {
        // What was said before this worker began counts too.
        await control.caughtUp()
        if underWay.isCancelled(job) { throw Detachment.cancelled }
        guard let slot = job.slot else { return }
        let newer = await slots.claim(slot)
        if let newer { throw Detachment.superseded(by: newer) }
    }

    /// Asks before a job with a slot ends as ready: what was said about that may have been missed.
    /// - Throws: ``Detachment`` when nobody wants it.
    func check(_ slot: SlotClaim) async throws {
        let newer = await slots.newer(than: slot)
        if let newer { throw Detachment.superseded(by: newer) }
    }
}
