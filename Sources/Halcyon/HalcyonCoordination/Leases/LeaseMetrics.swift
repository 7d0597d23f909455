import Telemetry

/// The metrics of leases.
struct LeaseMetrics: Sendable {
    /// The counters of one kind of lease.
    struct Kind: Sendable {
        /// Leases acquired by this process.
        let taken: Counter
        /// Leases acquired after another process had held them and ended them without a product.
        let takenOver: Counter
        /// Leases held by another process, so that this one waits.
        let waited: Counter
        /// Products that were rejected because a newer one was stored, or they had been purged.
        let fencedOut: Counter
        /// Work without a lease while Redis was unavailable.
        let without: Counter
        /// Jobs that joined an operation of their own process.
        let joined: Counter

        init(_ metrics: Metrics, _ kind: String) {
            func counter(_ event: String) -> Counter {
                metrics.counter(
                    "halcyon_coalescing_total",
                    help: "Coalescing decisions, by kind and outcome.",
                    labels: ["kind": kind, "event": event])
            }
            taken = counter("taken")
            takenOver = counter("taken_over")
            waited = counter("waited")
            fencedOut = counter("fenced_out")
            without = counter("without")
            joined = counter("joined")
        }
    }

    let source: Kind
    let result: Kind
    let unshared: Kind
    /// A gauge that is 1 while leases are used, and 0 while Redis is unavailable.
    let isCoalescing: Gauge
    /// Leases that had expired before they were renewed.
    let lost: Counter

    init(_ metrics: Metrics) {
        source = Kind(metrics, "source")
        result = Kind(metrics, "result")
        unshared = Kind(metrics, "unshared")
        isCoalescing = metrics.gauge(
            "halcyon_coalescing", help: "1 while work is shared with other workers, 0 while Redis is unavailable.")
        isCoalescing.set(1)
        lost = metrics.counter(
            "halcyon_leases_lost_total",
            help: "Leases that were lost before their renewal. The work under them may be repeated.")
    }

    subscript(kind: LeaseKind) -> Kind {
        switch kind {
        case .source: source
        case .result: result
        case .unshared: unshared
        }
    }
}

/// The kinds of leases.
public enum LeaseKind: Sendable {
    case source, result
    /// A result for a single job, which is not shared.
    case unshared
}
