import Telemetry

/// What the source tier counts, by how a source was had.
struct SourceTierMetrics: Sendable {
    /// From the tier, fresh.
    let fresh: Counter
    /// From the tier, stale, where that was allowed.
    let stale: Counter
    /// From the tier, after its origin had confirmed it.
    let confirmed: Counter
    /// From its origin.
    let loaded: Counter
    /// Not at all: a failure that was remembered.
    let failed: Counter
    /// Bytes that came from origins.
    let fetchedBytes: Counter

    init(_ metrics: Metrics) {
        func counter(_ result: String) -> Counter {
            metrics.counter(
                "halcyon_sources_total", help: "Sources that were asked for, by how they were had.",
                labels: ["from": result])
        }
        fresh = counter("tier")
        stale = counter("tier-stale")
        confirmed = counter("tier-confirmed")
        loaded = counter("origin")
        failed = counter("tier-failure")
        fetchedBytes = metrics.counter(
            "halcyon_fetched_bytes_total", help: "Bytes of sources that came from their origins.")
    }
}
