import HalcyonCluster
import HalcyonCoordination
import HalcyonImaging
import HalcyonModel
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
    /// When jobs that failed are tried again.
    public var retries = RetryPolicy()
    /// How jobs are taken and committed.
    public var consumer = JobConsumer.Options()
    /// How events and offsets are committed together, exactly once; nil for at least once.
    public var transactions: TransactionOptions?
    /// The name of a static member of the group, which may be away for a session's time without losing its partitions; nil for none.
    public var staticMember: String?
    /// How sources are loaded.
    public var sources = SourceOptions()
    /// Which of them are kept, where and for how long.
    public var sourceTier = SourceTierOptions()
    /// How their origins are spared.
    public var origins = OriginLimits()
    /// Sources on their way, or in memory waiting to be rendered.
    public var fetches = 256
    /// Results on their way at once to where jobs have them put by HTTP.
    public var puts = 64
    /// Bytes of memory that this process and its children may hold together, see ``memory``.
    public var memoryLimit = Int.max
    /// Results made at once while Redis is away, and with it the word of what other workers make.
    public var fetchesWithoutLeases = 32
    /// How who makes a source or a result is agreed on with other workers.
    public var leases = LeaseOptions()
    /// Of each lane, its share of what becomes free while all lanes wait.
    public var shares: [Lane: Int] = [.high: 16, .normal: 4, .low: 1]
    /// Images rendered at once.
    public var concurrency = 1
    /// How it says that it is there.
    public var roll = RollOptions()
    /// What one image may cost.
    public var images = ImageLimits()
    /// Where pictures are rendered whose codecs cannot be stopped half way; nil for this process, which then waits.
    public var renderChildren: RenderChildOptions?
    /// Processors and sizers of the host program that jobs may name.
    public var extensions = Extensions()
    /// Providers of the host program that jobs may name as sources.
    public var providers = CustomProviders()
    /// Time before the first progress event of a job and between two of them; zero disables progress events.
    public var progressInterval = Duration.seconds(1)
    /// How results are kept.
    public var results = ResultOptions()
    /// For how many seconds it is remembered that a job was cancelled which has not been taken yet.
    public var cancelMemory = 3600.0
    /// Of how many jobs at most.
    public var cancelledJobs = 100_000
    /// When it counts as stuck, and what then.
    public var health = HealthOptions()
    /// Time to finish on leaving.
    public var grace = Duration.seconds(25)

    /// How what all workers are told is heard: as far back as jobs that were cancelled are remembered, or a folder may hold what was purged.
    var control: ControlReader.Options {
        ControlReader.Options(
            topics: topics, properties: kafka.control, reader: reader.knowing(extensions, providers),
            memory: max(cancelMemory, sourceTier.folder == nil ? 0 : sourceTier.folderRetention))
    }

    /// How ``memoryLimit`` is divided: what the process holds without any picture; of the rest three quarters for renderings under way,
    /// here and in children; and of what is left as much for each of the ``fetches``. A source that is larger takes the places of several.
    var memory: (renderings: Int, fetch: Int) {
        let pictures = memoryLimit - min(memoryLimit / 4, 96 << 20)
        let sources = pictures / 4
        return (pictures - sources, max(1, sources / fetches))
    }

    /// What one image may cost: no more than all may together.
    var imagesWithinMemory: ImageLimits {
        var limits = images
        // A child takes some itself.
        let most = memory.renderings - min(renderChildren?.baseMemory ?? 0, memory.renderings / 2)
        limits.renderedBytes = min(limits.renderedBytes, most)
        limits.decodedBytes = min(limits.decodedBytes, most)
        return limits
    }

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
    public var budget = Budget()
    /// Bytes of the largest file that an event may carry. In base64 it must stay below Kafka's limit of 1 MiB a message.
    public var inlineLimit = 700 << 10
    /// Seconds that a result lives which may be read once.
    public var handOffLifetime = 300.0
    /// How long to wait for Redis before a result goes out in its event instead, if it fits.
    public var patience = Duration.seconds(5)

    /// The defaults.
    public init() {}
}
