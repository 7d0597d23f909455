import Telemetry

/// What senders of webhooks count.
struct WebhookMetrics: Sendable {
    private let webhooks: [WebhookOutcome: Counter]

    /// What becomes of a webhook, for now or for good.
    enum WebhookOutcome: String, CaseIterable {
        /// It was answered with a status of the 200s.
        case delivered
        /// A request failed, and another one follows.
        case retried
        /// It was put off without a request: its target has enough of them, or is down.
        case postponed
        /// It was put aside.
        case dead
    }

    init(_ metrics: Metrics) {
        webhooks = Dictionary(
            uniqueKeysWithValues: WebhookOutcome.allCases.map { outcome in
                let counter = metrics.counter(
                    "halcyon_webhooks_total", help: "Webhooks, by what became of them, for now or for good.",
                    labels: ["outcome": outcome.rawValue])
                return (outcome, counter)
            })
    }

    /// Counts a webhook.
    func count(_ outcome: WebhookOutcome) { webhooks[outcome]?.add() }
}
