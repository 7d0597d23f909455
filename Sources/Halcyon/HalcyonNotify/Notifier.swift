import HalcyonCluster
import HalcyonModel
import HalcyonSources
import Kafka
import Redis
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

/// A consumer group of notifiers.
public struct NotifierGroup: Hashable, Sendable {
    /// As Kafka knows it.
    public let name: String
    /// What it takes.
    public let topics: [String]
}

extension NotifierOptions {
    /// Those who tell Redis' subscribers.
    var pubSubGroup: NotifierGroup { NotifierGroup(name: "\(group)-notifications", topics: [topics.events]) }

    /// Those who tell webhooks.
    var webhookGroup: NotifierGroup {
        NotifierGroup(name: "\(group)-webhooks", topics: [topics.events] + topics.webhookRetries)
    }

    /// The groups that have anything to do.
    public var groups: [NotifierGroup] {
        (pubSub == nil ? [] : [pubSubGroup]) + (webhooks.targets.isEmpty ? [] : [webhookGroup])
    }
}

/// Everything a notifier can be told. The settings of the same names are documented by `halcyon config`.
public struct NotifierOptions: Sendable {
    /// The cluster's topics.
    public var topics: Topics
    /// How to reach Kafka.
    public var kafka: KafkaProperties
    /// The consumer group of the workers: those of the notifiers are named after it.
    public var group = "halcyon-workers"
    /// Where subscribers are.
    public var redis: RedisEndpoint
    /// How events are taken and committed.
    public var consumer = JobConsumer.Options()
    /// How events go to the subscribers of Redis; nil for not at all.
    public var pubSub: PubSubOptions? = PubSubOptions()
    /// How events go to webhooks.
    public var webhooks = WebhookOptions()
    /// Which addresses of webhooks may be dialled.
    public var policy = AddressPolicy()
    /// How Halcyon names itself to webhooks.
    public var userAgent = "Halcyon"

    /// Takes the places of the servers; the rest has defaults.
    public init(topics: Topics = Topics(), kafka: KafkaProperties, redis: RedisEndpoint) {
        self.topics = topics
        self.kafka = kafka
        self.redis = redis
    }
}

extension NotifierOptions {
    /// What tells the subscribers of Redis; nil for nobody.
    var relay: EventRelay.Options? {
        guard let pubSub else { return nil }
        return EventRelay.Options(
            topic: topics.events,
            properties: kafka.notifier(group: pubSubGroup.name, patience: consumer.revocationPatience),
            consumer: consumer, of: "notifications", maximumAge: pubSub.maximumAge)
    }
}

/// How events go to the subscribers of Redis.
public struct PubSubOptions: Hashable, Sendable {
    /// Seconds after which nobody is told of an event any more, as when Redis was away for long.
    public var maximumAge = 3600.0

    /// The defaults.
    public init() {}
}

/// How events go to webhooks.
public struct WebhookOptions: Sendable {
    /// Who may be told, and how that is signed.
    public var targets = WebhookTargets()
    /// Of which events.
    public var kinds = Set(Event.Kind.allCases.filter(\.isTerminal))
    /// For a whole request, from the name to the end of the response.
    public var timeout = Duration.seconds(15)
    /// Bytes of a response that are read; nobody looks at them.
    public var maximumResponseBytes = 64 << 10
    /// When a request that failed is made again.
    public var retries = WebhookOptions.patient
    /// How many requests there are at once, and when a target counts as down.
    public var limits = TargetLimits()

    /// The defaults.
    public init() {}

    /// For a day.
    private static var patient: RetryPolicy {
        var policy = RetryPolicy()
        policy.attempts = 40
        policy.budget = 86_400
        return policy
    }
}
