import Concurrency
import HalcyonModel

/// Finds batches whose counts are incomplete although no message tells so, because a worker was killed before it counted
/// a job, or Redis has lost the last second of its writes in a failover. They are counted again.
struct BatchAudit: Sendable {
    let store: BatchStore
    let batches: BatchLog
    let recounter: BatchRecounter
    /// The time without progress after which a batch is counted again. It doubles with each repetition.
    let recountAfter: Duration

    /// The longest time without progress after which a batch is counted again.
    private static let longest = Duration.seconds(3600)

    /// The last change of a batch, as seen by this worker.
    private struct Check {
        var ended: Int
        var since = ContinuousClock.now
        var patience: Duration

        var isOver: Bool { since.duration(to: .now) >= patience }
    }

    /// Checks all batches periodically until the task is cancelled.
    /// - Parameter isOwner: a function that returns true if this worker handles the messages about batches. No other one
    ///   checks them.
    func run(while isOwner: @escaping @Sendable () -> Bool) async {
        var checks: [String: Check] = [:]
        while !Task.isCancelled {
            await Task.sleepUnlessCancelled(for: recountAfter / 4)
            checks = isOwner() ? await check(after: checks) : [:]
        }
    }

    private func check(after last: [String: Check]) async -> [String: Check] {
        var checks: [String: Check] = [:]
        for entry in batches.incomplete() where !Task.isCancelled {
            let id = entry.batch.id
            // If Redis is unavailable, nothing can be counted either.
            guard let (batch, _) = try? await store.note(id) else { continue }
            let ended = batch?.counts.ended ?? 0
            var check = last[id] ?? Check(ended: ended, patience: recountAfter)
            if check.ended != ended { check = Check(ended: ended, patience: recountAfter) }
            if check.isOver {
                await recounter.request(id)
                check = Check(ended: ended, patience: min(check.patience * 2, Self.longest))
            }
            checks[id] = check
        }
        return checks
    }
}
