import HalcyonCluster
import HalcyonModel
import HalcyonSources
import Kafka
import Redis
import Telemetry

/// Notifies Redis subscribers and webhooks of the events that are committed to the event topic.
///
/// Any process of a cluster may run a notifier. Notifiers share the partitions. Pub/Sub and webhooks have separate
/// consumer groups, so that neither waits for the other.
public final class Notifier: Sendable {
    private let relay: EventRelay?
    private let webhooks: WebhookSender?

    private init(_ relay: EventRelay?, _ webhooks: WebhookSender?) {
        self.relay = relay
        self.webhooks = webhooks
    }

    /// Starts a notifier. It waits for servers that are unavailable instead of failing.
    /// - Parameter onEnd: A callback for fatal errors. The caller is expected to drain the notifier.
    /// - Throws: ``KafkaError`` that names a property rejected by librdkafka.
    public static func start(
        _ options: NotifierOptions, log: Log, metrics: Metrics,
        onEnd: @escaping @Sendable (KafkaError) -> Void = { _ in }
    ) async throws(KafkaError) -> Notifier {
        let relay = options.relay.map {
            EventRelay($0, to: options.redis, log: log, metrics: metrics, EventChannel.publishing)
        }
        let webhooks =
            options.isSendingNothing
            ? nil : try WebhookSender(options, log: log, metrics: metrics, onEnd: onEnd)
        let notifier = Notifier(relay, webhooks)
        do throws(KafkaError) {
            try await relay?.start()
            try await webhooks?.start(options)
        } catch {
            await notifier.shutdown(gracePeriod: .zero)
            throw error
        }
        return notifier
    }

    /// Waits for the first partition assignment of each group.
    public func ready() async {
        await relay?.ready()
        await webhooks?.consumer.waitForAssignment()
    }

    /// Drains the notifier. It accepts no more events, finishes those in flight within `grace`, commits, leaves the
    /// groups, and closes all connections.
    public func shutdown(gracePeriod grace: Duration) async {
        async let relayed: Void? = relay?.shutdown(gracePeriod: grace)
        await webhooks?.shutdown(gracePeriod: grace)
        _ = await relayed
    }
}

/// A consumer group of notifiers.
public struct NotifierGroup: Hashable, Sendable {
    /// The group id in Kafka.
    public let name: String
    /// The topics that it consumes.
    public let topics: [String]
}

extension NotifierOptions {
    /// The group that publishes to Redis.
    var pubSubGroup: NotifierGroup { NotifierGroup(name: "\(group)-notifications", topics: [topics.events]) }

    /// The group that sends webhooks.
    var webhookGroup: NotifierGroup {
        NotifierGroup(name: "\(group)-webhooks", topics: [topics.events] + topics.webhookRetries)
    }

    /// The groups that are in use.
    public var groups: [NotifierGroup] {
        (pubSub == nil ? [] : [pubSubGroup]) + (isSendingNothing ? [] : [webhookGroup])
    }

    /// True if there is no receiver of webhooks and purges.
    var isSendingNothing: Bool { webhooks.targets.isEmpty && purgeHooks.isEmpty }

    /// The receivers of purges, which belong to no job: all hooks, and all named webhooks if purges are sent to
    /// webhooks.
    var purgeReceivers: [NotificationTarget] {
        let names = webhooks.kinds.contains(.purged) ? webhooks.targets.names : []
        return purgeHooks.keys.sorted().map { .purgeHook($0) } + names.map { .webhook(.name($0)) }
    }
}

/// The options of a notifier. The settings of the same names are documented by `halcyon config`.
public struct NotifierOptions: Sendable {
    /// The cluster's topics.
    public var topics: Topics
    /// The properties of the Kafka clients.
    public var kafka: KafkaProperties
    /// The consumer group of the workers, from which the names of the notifiers' groups are derived.
    public var group = "halcyon-workers"
    /// The Redis servers to publish on.
    public var redis: RedisEndpoint
    /// The options for consuming events and committing offsets.
    public var consumer = JobConsumer.Options()
    /// The options of Redis Pub/Sub. Nil disables it.
    public var pubSub: PubSubOptions? = PubSubOptions()
    /// The options of webhooks.
    public var webhooks = WebhookOptions()
    /// The hooks that are notified of purges, by name.
    public var purgeHooks: [String: PurgeHook] = [:]
    /// The policy for addresses to which webhooks may connect.
    public var policy = AddressPolicy()
    /// The User-Agent of webhook requests.
    public var userAgent = "Halcyon"

    /// Creates options for the given servers. Everything else has its default value.
    public init(topics: Topics = Topics(), kafka: KafkaProperties, redis: RedisEndpoint) {
        self.topics = topics
        self.kafka = kafka
        self.redis = redis
    }
}

extension NotifierOptions {
    /// The options of the relay to Redis. Nil if Pub/Sub is disabled.
    var relay: EventRelay.Options? {
        guard let pubSub else { return nil }
        return EventRelay.Options(
            topic: topics.events,
            properties: kafka.notifier(group: pubSubGroup.name, revocationTimeout: consumer.revocationTimeout),
            consumer: consumer, of: "notifications", maximumAge: pubSub.maximumAge)
    }
}

/// The options of Redis Pub/Sub.
public struct PubSubOptions: Hashable, Sendable {
    /// The maximum age of an event, in seconds. Older events are not published, for example after a long Redis outage.
    public var maximumAge = 3600.0

    /// Creates the default options.
    public init() {}
}

/// The options of webhooks.
public struct WebhookOptions: Sendable {
    /// The allowed targets and their secrets.
    public var targets = WebhookTargets()
    /// The kinds of events that are sent.
    public var kinds = Set(Event.Kind.allCases.filter(\.isTerminal))
    /// The timeout of a whole request, from name resolution to the end of the response.
    public var timeout = Duration.seconds(15)
    /// The maximum number of response bytes that are read. Their content is ignored.
    public var maximumResponseBytes = 64 << 10
    /// The policy for retries of failed requests.
    public var retries = WebhookOptions.patient
    /// The concurrency limits and the circuit breaker thresholds.
    public var limits = TargetLimits()

    /// Creates the default options.
    public init() {}

    /// The default retry policy, which retries for a day.
    private static var patient: RetryPolicy {
        var policy = RetryPolicy()
        policy.attempts = 40
        policy.budget = 86_400
        return policy
    }
}

/// The Redis channels on which events are published.
public enum EventChannel {
    /// All events.
    public static let all = "halcyon:events"

    /// Returns the channel with the events of one job.
    public static func of(job id: String) -> String { "\(all):\(id)" }
}

extension EventChannel {
    /// Returns the commands that publish an event: on the channel of all events and, if the record has a job id as its
    /// key, on the channel of the job.
    static func publishing(_ record: ConsumedRecord) -> [[RedisArgument]] {
        let value = RedisArgument.bytes(record.value ?? [])
        let all: [RedisArgument] = ["PUBLISH", .string(all), value]
        guard let key = record.key else { return [all] }
        return [all, ["PUBLISH", .bytes(Array(of(job: "").utf8) + key), value]]
    }
}
