import HalcyonCluster
import HalcyonImaging
import HalcyonRendering
import HalcyonSources
import HalcyonWire
import Redis

/// Everything a worker can be told. The settings of the same names are documented by `halcyon config`.
public struct WorkerOptions: Sendable {
    /// The cluster's topics.
    public var topics: Topics
    /// How to reach Kafka.
    public var kafka: KafkaProperties
    /// The consumer group that the workers share.
    public var group = "halcyon-workers"
    /// Where results are kept.
    public var redis: RedisEndpoint

    /// Which messages are jobs.
    public var reader = JobReader()
    /// How jobs are taken and committed.
    public var consumer = JobConsumer.Options()
    /// How sources are loaded.
    public var sources = SourceOptions()
    /// Which of them are kept, where and for how long.
    public var sourceTier = SourceTierOptions()
    /// How their origins are spared.
    public var origins = OriginLimits()
    /// Sources on their way, or in memory waiting to be rendered.
    public var fetches = 256
    /// Images rendered at once.
    public var concurrency = 1
    /// What one image may cost.
    public var images = ImageLimits()
    /// Where pictures are rendered whose codecs cannot be stopped half way; nil for this process, which then waits.
    public var renderChildren: RenderChildOptions?
    /// Processors and sizers of the host program that jobs may name.
    public var extensions = Extensions()
    /// Providers of the host program that jobs may name as sources.
    public var providers = CustomProviders()
    /// How results are kept.
    public var results = ResultOptions()
    /// Time to finish on leaving.
    public var grace = Duration.seconds(25)

    /// Takes the places of the servers; the rest has defaults.
    public init(topics: Topics = Topics(), kafka: KafkaProperties, redis: RedisEndpoint) {
        self.topics = topics
        self.kafka = kafka
        self.redis = redis
    }
}

/// How results are kept.
public struct ResultOptions: Sendable {
    /// Seconds that a result lives about which nothing was said.
    public var defaultLifetime = 86_400.0
    /// Part of such a life, and of one that a response gave, which is taken off at random, 0 to 0.5: so results that were made
    /// together do not all go together. 0 for none. What a job says itself is kept to.
    public var jitter = 0.0
    /// What the results of one tenant may take together.
    public var budget = ResultBudget()
    /// Bytes of the largest file that an event may carry. In base64 it must stay below Kafka's limit of 1 MiB a message.
    public var inlineLimit = 700 << 10
    /// Seconds that a result lives which may be read once.
    public var handOffLifetime = 300.0
    /// How long to wait for Redis before a result goes out in its event instead, if it fits.
    public var patience = Duration.seconds(5)

    /// The defaults.
    public init() {}
}
