import Concurrency
import HalcyonCluster
import HalcyonCoding
import HalcyonCoordination
import HalcyonImaging
import HalcyonModel
import HalcyonResults
import HalcyonSources
import Redis

/// The options of a worker. The settings of the same names are documented by `halcyon config`.
public struct WorkerOptions: Sendable {
    /// The cluster's topics.
    public var topics: Topics
    /// The properties of the Kafka clients.
    public var kafka: KafkaProperties
    /// The consumer group that the workers share.
    public var group = "halcyon-workers"
    /// The Redis servers that store the results.
    public var redis: RedisEndpoint

    /// The decoder of job messages.
    public var reader = JobDecoder()
    /// The presets of the settings. Presets that are registered in Redis are added to them.
    public var presets: [Preset] = []
    /// The time for which a worker that finds no registered presets at all retries jobs with unknown presets, because
    /// Redis may have lost them and other processes store them again.
    public var presetRestoration = Duration.seconds(30)
    /// The options of the index of jobs with presets.
    public var presetIndex = PresetIndexOptions()
    /// The policy for retries of failed jobs.
    public var retries = RetryPolicy()
    /// The options for consuming jobs and committing offsets.
    public var consumer = {
        var options = JobConsumer.Options()
        options.lookahead = 5000
        return options
    }()
    /// The options for committing events and offsets together, exactly once. Nil for at-least-once delivery.
    public var transactions: TransactionOptions?
    /// The name of a static member of the group, which keeps its partitions while it is away for up to the session
    /// timeout. Nil for a dynamic member.
    public var staticMember: String?
    /// The options for loading sources.
    public var sources = SourceOptions()
    /// The options of the source cache.
    public var sourceTier = SourceCacheOptions()
    /// The archive copies of large sources. With 0 for ``ArchiveOptions/minimumPixels`` there are none.
    public var archive = ArchiveOptions(minimumPixels: 0, pixels: 3_000_000)
    /// The limits that protect the origins.
    public var origins = OriginLimits()
    /// The maximum number of sources in transfer, or in memory waiting to be rendered.
    public var fetches = 256
    /// The maximum number of concurrent uploads of results by HTTP PUT.
    public var puts = 128
    /// The limits that protect the targets of uploads.
    public var putTargets = TargetLimits.uploads
    /// The time for which an upload waits for its target and for a permit. Then its job is postponed.
    public var putPatience = Duration.seconds(5)
    /// The memory limit of this process and its child processes together, in bytes. See ``memory``.
    public var memoryLimit = Int.max
    /// The maximum number of concurrent renderings while Redis is unavailable and work cannot be coordinated with other
    /// workers.
    public var fetchesWithoutLeases = 32
    /// The options of the leases that coordinate work with other workers.
    public var leases = LeaseOptions()
    /// True if jobs of tenants that flood a partition are moved to the overflow topic.
    public var overflows = true
    /// The budgets and times of refreshes.
    public var refresh = RefreshOptions()
    /// The options of batches.
    public var batches = BatchOptions()
    /// The limits of the tracker of batches, and its commit settings.
    var trackers: JobConsumer.Options {
        var limits = consumer
        (limits.window, limits.lookahead) = (5000, 0)
        return limits
    }
    /// The options by which tenants share the capacity of a lane.
    public var tenants = TenantOptions()
    /// The share of each lane in the capacity that becomes free while all lanes wait.
    public var shares: [Lane: Int] = [.high: 16, .normal: 4, .low: 1]
    /// The maximum number of concurrent renderings.
    public var concurrency = 1
    /// The options of the heartbeat.
    public var heartbeat = HeartbeatOptions()
    /// The limits for a single image.
    public var images = ImageLimits()
    /// The options of the render processes, for images whose codecs cannot be interrupted. If it is nil, they are
    /// rendered in this process, which then waits for them.
    public var renderChildren: RenderProcessOptions?
    /// The options of the detector of faces and objects.
    public var detector = DetectorOptions()
    /// The custom processors and sizers that jobs may name.
    public var extensions = Extensions()
    /// The custom source providers that jobs may name.
    public var providers = CustomProviders()
    /// The time before the first progress event of a job and between two events. Zero disables progress events.
    public var progressInterval = Duration.seconds(1)
    /// The options for storing results.
    public var results = ResultOptions()
    /// The persistent result store; nil if results live in Redis only.
    public var resultStore: ResultStoreOptions?
    /// The seconds for which the cancellation of a job that has not been received yet is remembered.
    public var cancelMemory = 3600.0
    /// The maximum number of cancellations that are remembered.
    public var cancelledJobs = 100_000
    /// The options of the watchdog.
    public var health = HealthOptions()
    /// The grace period for finishing jobs during shutdown.
    public var grace = Duration.seconds(25)

    /// The options of the control topic reader. It reads back as far as cancellations are remembered, or as the source
    /// cache folder may contain purged sources.
    var control: ControlReader.Options {
        ControlReader.Options(
            topics: topics, properties: kafka.control, reader: reader.withExtensions(extensions, providers),
            memory: max(cancelMemory, sourceTier.folder == nil ? 0 : sourceTier.folderRetention))
    }

    /// The division of ``memoryLimit``. A base amount is reserved for the process without any image. Three quarters of
    /// the rest are for renderings in flight, in this process and in child processes. The remainder is divided equally
    /// among the ``fetches``. A larger source takes several permits.
    var memory: (renderings: Int, fetch: Int) {
        let pictures = memoryLimit - min(memoryLimit / 4, 96 << 20)
        let sources = pictures / 4
        return (pictures - sources, max(1, sources / fetches))
    }

    /// The limits for a single image, capped by the memory for all renderings.
    var imagesWithinMemory: ImageLimits {
        var limits = images
        // A render process needs some memory itself.
        let most = memory.renderings - min(renderChildren?.baseMemory ?? 0, memory.renderings / 2)
        limits.renderedBytes = min(limits.renderedBytes, most)
        limits.decodedBytes = min(limits.decodedBytes, most)
        return limits
    }

    /// Creates options for the given servers. Everything else has its default value.
    public init(topics: Topics = Topics(), kafka: KafkaProperties, redis: RedisEndpoint) {
        self.topics = topics
        self.kafka = kafka
        self.redis = redis
    }
}

/// The options for storing results.
public struct ResultOptions: Sendable {
    /// The default TTL of a result, in seconds.
    public var defaultLifetime = 86_400.0
    /// The fraction of the TTL, from 0 to 0.5, that is subtracted at random, so that results rendered together do not
    /// expire together. It applies to the default TTL and to TTLs from responses, but not to a TTL set by the job. 0
    /// disables jitter.
    public var jitter = 0.0
    /// The quota for the results of one tenant.
    public var budget = Budget()
    /// The maximum size of a file in an event, in bytes. Encoded as base64, it must stay below Kafka's message limit of
    /// 1 MiB.
    public var inlineLimit = 700 << 10
    /// The TTL of a result that can be read only once, in seconds.
    public var handOffLifetime = 300.0
    /// The time to wait for Redis before a result is delivered in its event instead, if it fits.
    public var storeTimeout = Duration.seconds(5)

    /// Creates the default options.
    public init() {}
}

/// The options by which tenants share the capacity of the workers.
public struct TenantOptions: Sendable {
    /// The weights of tenants, above 0. Those that are missing have the weight 1.
    public var weights: [String: Double] = [:]
    /// The limits of tenants in the cluster.
    public var limits = FlowLimiter.Limits()
    /// The maximum number of tenants with metrics of their own in a worker; 0 for no metrics by tenant.
    public var metrics = 20

    /// Creates options with equal weights.
    public init() {}

    /// Returns the flow of a tenant; nil for jobs without a tenant, which share one flow.
    func flow(of tenant: String?) -> Flow { Flow(tenant, weight: tenant.flatMap { weights[$0] } ?? 1) }
}
