import Telemetry

/// What became of the jobs of a worker that leaves.
struct Drained: Hashable {
    /// How long it waited for those that had begun, and for the last commit.
    let took: Duration
    let ended: Int
    /// They had not begun: the next owner of their partition does them.
    let handedBack: Int
    /// They had begun, and did not end within the grace; they are done again.
    let cutShort: Int

    func tell(_ things: String, _ log: Log, _ metrics: DeliveryMetrics) {
        log.notice(
            things == "jobs" ? "drained" : "\(things) drained",
            ["took": took, "ended": ended, "handedBack": handedBack, "cutShort": cutShort])
        metrics.drainSeconds.set(took / .seconds(1))
        metrics.drained(ended: ended, handedBack: handedBack, cutShort: cutShort)
    }
}
