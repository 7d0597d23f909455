/// What exporters count.
struct SpanMetrics: Sendable {
    let exported: Counter
    let dropped: Counter
    let failures: Counter

    init(_ metrics: Metrics) {
        func spans(_ outcome: String) -> Counter {
            metrics.counter(
                "halcyon_trace_spans_total", help: "Spans of traces, by whether the collector took them.",
                labels: ["outcome": outcome])
        }
        exported = spans("exported")
        dropped = spans("dropped")
        failures = metrics.counter(
            "halcyon_trace_export_failures_total", help: "Requests to the collector of traces that failed.")
    }
}
