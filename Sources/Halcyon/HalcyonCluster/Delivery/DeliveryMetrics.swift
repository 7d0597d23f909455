import Telemetry

/// What a consumer of jobs counts, or one of other things: then their name stands in the names of the metrics.
struct DeliveryMetrics: Sendable {
    /// Jobs that had not begun when their partition went or the worker drained.
    let recalled: Counter
    /// Jobs that came again though they had ended: the map of their partition said so.
    let skipped: Counter
    /// Offsets that had ended when their partition went, and that its commit had no room to tell of.
    let untold: Counter
    /// Partitions that the group has given to this consumer.
    let partitions: Gauge
    /// How long the last drain took.
    let drainSeconds: Gauge
    private let drainedJobs: (ended: Counter, handedBack: Counter, cutShort: Counter)

    init(_ metrics: Metrics, of things: String = "jobs") {
        let prefix = things == "jobs" ? "halcyon" : "halcyon_\(things)"
        recalled = metrics.counter(
            "halcyon_\(things)_recalled_total",
            help: "How many were handed back before they began: their partition went, or the worker drained.")
        skipped = metrics.counter(
            "halcyon_\(things)_skipped_total",
            help: "How many were not done again, for an earlier owner of their partition had ended them.")
        untold = metrics.counter(
            "\(prefix)_offsets_untold_total",
            help:
                "Offsets of what may be done twice: it had ended, and a partition's last commit had no room to say so.")
        partitions = metrics.gauge(
            "\(prefix)_partitions", help: "Partitions that the group has given to this consumer.")
        drainSeconds = metrics.gauge(
            "\(prefix)_drain_seconds", help: "How long the last drain took; 0 before there was one.")
        func drained(_ fate: String) -> Counter {
            metrics.counter(
                "halcyon_drained_\(things)_total",
                help: "What was under way when a drain began, by what became of it.",
                labels: ["fate": fate])
        }
        drainedJobs = (drained("ended"), drained("handed_back"), drained("cut_short"))
    }

    /// What became of jobs that were under way when a drain began.
    func drained(ended: Int, handedBack: Int, cutShort: Int) {
        drainedJobs.ended.add(ended)
        drainedJobs.handedBack.add(handedBack)
        drainedJobs.cutShort.add(cutShort)
    }
}
