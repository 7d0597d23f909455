import HTTPServer
import HalcyonCluster
import HalcyonCoding
import HalcyonCoordination
import HalcyonResults
import Redis

/// The options of a gateway. `halcyon config` documents the settings of the same names.
public struct GatewayOptions: Sendable {
    /// The topics of the cluster.
    public var topics: Topics
    /// The Kafka connection properties.
    public var kafka: KafkaProperties
    /// The consumer group of the workers. The name of the gateways' group starts with it.
    public var group = "halcyon-workers"
    /// The Redis server that stores the results.
    public var redis: RedisEndpoint
    /// The persistent result store; nil if results live in Redis only.
    public var resultStore: ResultStoreOptions?
    /// True if `GET /v1/images/{key}` redirects to the public URL of a result in the store.
    public var redirectsToStore = false
    /// The decoder of jobs.
    public var reader = JobDecoder()
    /// The presets of the settings, the same as those of the workers.
    public var presets: [Preset] = []
    /// Authentication, authorization, rate limits and CORS.
    public var access = AccessOptions()
    /// The in-memory cache of images.
    public var imageCache = ImageMemoryCacheOptions()
    /// The headers by which shared caches purge images.
    public var cacheTags = CacheTagOptions()
    /// The quota of each tenant, the same as that of the workers. If it is set, renderings count as uses of results.
    public var budget = Budget()
    /// Settings for submitting jobs.
    public var jobs = JobsOptions()
    /// The options of batches, the same as those of the workers.
    public var batches = BatchOptions()
    /// Settings for rendering images on request.
    public var render = RenderOptions()
    /// Settings for listing and replaying dead letters.
    public var dead = DeadLetterOptions()
    /// Settings of the cluster overview.
    public var overview = OverviewOptions()
    /// Settings of the event streams.
    public var events = EventOptions()
    /// The limits of the HTTP server.
    public var limits = HTTPServer.Limits()

    /// Creates options for the given servers.
    public init(topics: Topics = Topics(), kafka: KafkaProperties, redis: RedisEndpoint) {
        self.topics = topics
        self.kafka = kafka
        self.redis = redis
    }
}

extension GatewayOptions {
    /// The options of the reader of control messages. Presets are loaded at the start, so older messages are skipped.
    var control: ControlReader.Options {
        ControlReader.Options(topics: topics, properties: kafka.control, reader: reader, memory: 60)
    }

    /// The options of the relay that updates job states, as a member of the gateways' group.
    var states: EventRelay.Options {
        EventRelay.Options(
            topic: topics.events, properties: kafka.bookkeeper(group: "\(group)-gateways"),
            consumer: JobConsumer.Options(), of: "job_states", maximumAge: jobs.memory)
    }
}
