import HalcyonModel
import HalcyonWire
import Telemetry

/// Counts control messages by what they say.
struct ControlMetrics: Sendable {
    private let cancels, purges, unknown, wrong: Counter

    init(_ metrics: Metrics) {
        func counter(_ kind: String) -> Counter {
            metrics.counter(
                "halcyon_control_messages_total", help: "Messages on the control topic, by what they say.",
                labels: ["kind": kind])
        }
        (cancels, purges) = (counter("cancel"), counter("purge"))
        (unknown, wrong) = (counter("unknown"), counter("wrong"))
    }

    func count(_ message: ControlMessage) {
        switch message {
        case .cancel: cancels.add()
        case .purge: purges.add()
        }
    }

    func count(_ refusal: ControlRefusal) {
        switch refusal {
        case .unknown: unknown.add()
        case .wrong: wrong.add()
        }
    }
}
