import HTTPServer
import HalcyonCluster
import HalcyonCoordination
import HalcyonWire
import Redis

/// Everything a gateway can be told. The settings of the same names are documented by `halcyon config`.
public struct GatewayOptions: Sendable {
    /// The cluster's topics.
    public var topics: Topics
    /// How to reach Kafka.
    public var kafka: KafkaProperties
    /// The consumer group that the workers share; the gateways' own begins with its name.
    public var group = "halcyon-workers"
    /// Where results are kept.
    public var redis: RedisEndpoint
    /// Which messages are jobs.
    public var reader = JobReader()
    /// Who may do what, how often, and from where.
    public var access = AccessOptions()
    /// Images that are kept for a moment.
    public var shelf = ShelfOptions()
    /// What the results of one tenant may take together, as workers are told it: then renderings count as uses.
    public var budget = Budget()
    /// How jobs are taken.
    public var jobs = JobsOptions()
    /// How images are rendered for those who wait for them.
    public var render = RenderOptions()
    /// How dead letters are worked.
    public var dead = DeadOptions()
    /// How the whole cluster is looked at.
    public var overview = OverviewOptions()
    /// How events are followed and handed on.
    public var events = EventOptions()
    /// What a client of the server may take.
    public var limits = HTTPServer.Limits()

    /// Takes the places of the servers; the rest has defaults.
    public init(topics: Topics = Topics(), kafka: KafkaProperties, redis: RedisEndpoint) {
        self.topics = topics
        self.kafka = kafka
        self.redis = redis
    }
}

extension GatewayOptions {
    /// What keeps the states of jobs: one of the gateways' group.
    var states: EventRelay.Options {
        EventRelay.Options(
            topic: topics.events, properties: kafka.bookkeeper(group: "\(group)-gateways"),
            consumer: JobConsumer.Options(), of: "job_states", maximumAge: jobs.memory)
    }
}
