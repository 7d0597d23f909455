import Telemetry

/// Counts how often a store of sources had what was looked for, fresh or not.
struct StoreLookups: Sendable {
    private let hits, misses: Counter

    /// - Parameter store: what it is called in the metrics: `folder` or `redis`.
    init(_ metrics: Metrics, _ store: String) {
        func counter(_ result: String) -> Counter {
            metrics.counter(
                "halcyon_source_lookups_total",
                help: "Sources that were looked for in each store of the source tier, by whether they were there.",
                labels: ["store": store, "result": result])
        }
        (hits, misses) = (counter("hit"), counter("miss"))
    }

    func count(isHit: Bool) { (isHit ? hits : misses).add() }
}
