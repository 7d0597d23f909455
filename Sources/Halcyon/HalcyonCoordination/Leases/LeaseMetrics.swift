import Telemetry

/// What is counted of leases, for each kind apart.
struct LeaseMetrics: Sendable {
    /// Of one kind of product.
    struct Kind: Sendable {
        /// Given to this process.
        let taken: Counter
        /// Given to it after another process had it and let it go without a product.
        let takenOver: Counter
        /// Held by another process when this one asked: it waits.
        let waited: Counter
        /// Made in vain: something newer was there, or it had been purged.
        let fencedOut: Counter
        /// Work without a lease, because Redis was away.
        let without: Counter
        /// Jobs that found the work under way in their own process.
        let joined: Counter

        init(_ metrics: Metrics, _ kind: String) {
            func counter(_ event: String) -> Counter {
                metrics.counter(
                    "halcyon_coalescing_total",
                    help: "What became of wishes for a source or a result, as coalescing saw them.",
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
    /// 1 while there are leases, 0 while Redis is away.
    let isCoalescing: Gauge
    /// Leases that had gone when they were to be prolonged.
    let lost: Counter

    init(_ metrics: Metrics) {
        source = Kind(metrics, "source")
        result = Kind(metrics, "result")
        unshared = Kind(metrics, "unshared")
        isCoalescing = metrics.gauge(
            "halcyon_coalescing", help: "1 while work is shared with other workers, 0 while Redis is away.")
        isCoalescing.set(1)
        lost = metrics.counter(
            "halcyon_leases_lost_total",
            help: "Leases that had gone when they were to be prolonged: the work under them may be done twice.")
    }

    subscript(kind: LeaseKind) -> Kind {
        switch kind {
        case .source: source
        case .result: result
        case .unshared: unshared
        }
    }
}

/// What leases are about.
public enum LeaseKind: Sendable {
    case source, result
    /// A result for one job alone, which nobody else may have.
    case unshared
}
