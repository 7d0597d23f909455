import HalcyonCluster
import HalcyonSources
import Kafka
import Telemetry

/// Takes committed events that are for webhooks, and those that are to be sent again.
final class WebhookSender: Sendable {
    let consumer: JobConsumer
    private let client: GuardedClient
    private let producer: Producer

    init(
        _ options: NotifierOptions, log: Log, metrics: Metrics, onEnd: @escaping @Sendable (KafkaError) -> Void
    ) throws(KafkaError) {
        let log = log.with(["of": "webhooks"])
        let (topics, webhooks) = (options.topics, options.webhooks)
        producer = try Producer(properties: options.kafka.producer, onFatal: onEnd)
        client = GuardedClient(options.policy, userAgent: options.userAgent)
        let delivery = WebhookDelivery(
            post: WebhookPost(
                client: client, timeout: webhooks.timeout, maximumResponseBytes: webhooks.maximumResponseBytes),
            options: webhooks, topics: topics, gates: TargetGates(webhooks.limits),
            outbox: AcknowledgedOutbox(producer), refusals: Refusals(log: log), metrics: WebhookMetrics(metrics),
            log: log)
        consumer = JobConsumer(options: options.consumer, of: "webhooks", log: log, metrics: metrics) { records in
            for taken in records {
                if WebhookNotice.isIn(taken.record, topics) {
                    Task { await delivery.run(taken) }
                } else if taken.begin() {
                    taken.end()
                } else {
                    taken.handBack()
                }
            }
        }
    }

    func start(_ options: NotifierOptions) async throws(KafkaError) {
        try await consumer.start(
            topics: options.webhookGroup.topics,
            properties: options.kafka.notifier(
                group: options.webhookGroup.name, patience: options.consumer.revocationPatience),
            events: ClientEvents())
    }

    func drain(grace: Duration) async {
        _ = await consumer.drain(grace: grace)
        await client.close()
        await producer.close()
    }
}
