import Telemetry

/// What a gateway counts of its event streams.
struct EventMetrics: Sendable {
    let streams: Gauge
    let sent: Counter
    let replays: Counter
    let gaps: Counter
    private let stalled: Counter
    private let behind: Counter

    init(_ metrics: Metrics) {
        streams = metrics.gauge("halcyon_gateway_event_streams", help: "Event streams that are open.")
        sent = metrics.counter("halcyon_gateway_events_sent_total", help: "Events sent to clients, of all streams.")
        replays = metrics.counter(
            "halcyon_gateway_event_replays_total",
            help: "Streams that were read from Kafka what they had missed, since it was not in memory any more.")
        gaps = metrics.counter(
            "halcyon_gateway_event_gaps_total", help: "Streams whose missed events the broker had deleted.")
        func dropped(_ reason: EventHub.DropReason) -> Counter {
            metrics.counter(
                "halcyon_gateway_event_streams_dropped_total",
                help: "Streams that were ended since the client did not read.",
                labels: ["reason": reason.rawValue])
        }
        (stalled, behind) = (dropped(.stalled), dropped(.behind))
    }

    func dropped(_ reason: EventHub.DropReason) -> Counter { reason == .stalled ? stalled : behind }
}
