import Telemetry

/// What is counted of the results that go to Redis.
struct StoreMetrics: Sendable {
    /// Bytes of results for all.
    let stored: Counter
    /// Bytes of results for one job alone.
    let handedOff: Counter

    init(_ metrics: Metrics) {
        func bytes(_ kind: String) -> Counter {
            metrics.counter(
                "halcyon_stored_bytes_total",
                help: "Bytes of images that Redis took: as results for all, or as hand-offs to one job alone.",
                labels: ["as": kind])
        }
        (stored, handedOff) = (bytes("result"), bytes("handoff"))
    }
}
