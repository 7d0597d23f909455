import HalcyonCluster
import Kafka
import Telemetry

/// Tells others what was committed to the topic of events: subscribers of Redis, and webhooks.
///
/// Any process of a cluster may run one; they share the partitions. Each way of telling has a consumer group of its own, so that none
/// waits for the other.
public final class Notifier: Sendable {
    private let relay: EventRelay?
    private let webhooks: WebhookSender?

    private init(_ relay: EventRelay?, _ webhooks: WebhookSender?) {
        self.relay = relay
        self.webhooks = webhooks
    }

    /// Begins to tell. Servers that are away are waited for: that is no error.
    /// - Parameter onEnd: called when it can do nothing more, with the reason. It is to be drained then.
    /// - Throws: ``KafkaError`` that names a property which librdkafka refuses.
    public static func start(
        _ options: NotifierOptions, log: Log, metrics: Metrics,
        onEnd: @escaping @Sendable (KafkaError) -> Void = { _ in }
    ) async throws(KafkaError) -> Notifier {
        let relay = options.relay.map {
            EventRelay($0, to: options.redis, log: log, metrics: metrics, EventChannel.publishing)
        }
        let webhooks =
            options.webhooks.targets.isEmpty
            ? nil : try WebhookSender(options, log: log, metrics: metrics, onEnd: onEnd)
        let notifier = Notifier(relay, webhooks)
        do throws(KafkaError) {
            try await relay?.start()
            try await webhooks?.start(options)
        } catch {
            await notifier.drain(grace: .zero)
            throw error
        }
        return notifier
    }

    /// Waits until the groups have given this one its share for the first time.
    public func ready() async {
        await relay?.ready()
        await webhooks?.consumer.assignedOnce()
    }

    /// Takes no more events, finishes what was begun within `grace`, commits, leaves the groups, and closes everything.
    public func drain(grace: Duration) async {
        async let relayed: Void? = relay?.drain(grace: grace)
        await webhooks?.drain(grace: grace)
        _ = await relayed
    }
}
