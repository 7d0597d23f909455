import Concurrency
import HalcyonModel

/// Collects the purges for one hook, and reports several in one request. A request is sent when it is full, or when its
/// first purge has waited for ``PurgeHook/Batch/linger``.
actor PurgeHookBatcher {
    /// The outcome of a request, for each purge in it.
    enum Outcome: Sendable {
        /// The cache has answered, or could not be reached. The error is nil if it has accepted the purges.
        case done(JobError?)
        /// No request was sent, because the cache is down or has too many requests.
        case postponed
        /// It is not known whether the request arrived.
        case unknown
    }

    private let limits: PurgeHook.Batch
    private let send: @Sendable (PurgeBatch) async -> Outcome
    private var batch = PurgeBatch()
    private var waiters: [CheckedContinuation<Outcome, Never>] = []
    private var timer: Task<Void, Never>?
    private var isClosed = false

    init(_ limits: PurgeHook.Batch, send: @escaping @Sendable (PurgeBatch) async -> Outcome) {
        self.limits = limits
        self.send = send
    }

    /// Reports a purge, together with others.
    func report(_ purge: PurgeNotice) async -> Outcome {
        await withCheckedContinuation { waiter in
            if !batch.add(purge, within: limits) {
                flush()
                // The first purge always fits.
                _ = batch.add(purge, within: limits)
            }
            waiters.append(waiter)
            if isClosed || batch.isFull(limits) {
                flush()
            } else if timer == nil {
                timer = Task { [linger = limits.linger] in
                    await Task.sleepUnlessCancelled(for: linger)
                    if !Task.isCancelled { flush() }
                }
            }
        }
    }

    /// Sends the purges that wait for others. From now on, no purge waits.
    func close() {
        isClosed = true
        flush()
    }

    private func flush() {
        timer?.cancel()
        timer = nil
        guard !batch.isEmpty else { return }
        let (batch, waiters) = (batch, waiters)
        (self.batch, self.waiters) = (PurgeBatch(), [])
        Task { [send] in
            let outcome = await send(batch)
            for waiter in waiters { waiter.resume(returning: outcome) }
        }
    }
}
