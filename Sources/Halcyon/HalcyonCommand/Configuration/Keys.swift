import HalcyonCluster
import HalcyonImaging
import HalcyonModel
import HalcyonRendering
import HalcyonSources
import HalcyonWorker
import Redis
import Settings
import Telemetry
import Vips

/// Every setting there is. The names are Halcyon's interface: scripts and charts rely on them.
enum Keys {
    // MARK: Kafka

    static let brokers = SettingKey(
        "kafka.brokers", .list(of: .hostPort), default: [HostPort(host: "127.0.0.1", port: 9092)],
        help: "Kafka's brokers to begin with.")
    static let prefix = SettingKey(
        "kafka.prefix", .string, default: Topics().prefix, help: "What the names of all topics begin with.")
    static let group = SettingKey(
        "kafka.group", .string, default: Defaults.worker.group, help: "The consumer group that the workers share.")
    static let kafkaProperties = SettingMap(
        "kafka.properties", variables: "KAFKA_PROPERTY_",
        help: "Any property of librdkafka, such as security.protocol.")

    static let offsetMetadata = SettingKey(
        "kafka.offsetMetadata", .byteSize(in: 0...32_767), default: Defaults.worker.consumer.metadataLimit,
        help:
            "Metadata of a commit, which tells what has ended beyond its offset; brokers take offset.metadata.max.bytes. 0 for none."
    )

    // MARK: Redis

    static let redisURL = SettingKey(
        "redis.url", .string, default: "redis://127.0.0.1:6379",
        help:
            "Redis: redis://host:port, redis+cluster://host:port,…, redis+sentinel://host:port,…/service or unix:/path; with rediss TLS, where hiredis has it."
    )

    // MARK: Sources

    static let allow = SettingKey(
        "sources.allow", .list(of: .addressRule), default: [],
        help:
            "Hosts (img.example.org, *.example.org), addresses and CIDR ranges to load from though they are not public."
    )
    static let deny = SettingKey(
        "sources.deny", .list(of: .addressRule), default: [],
        help: "Hosts, addresses and CIDR ranges never to load from.")
    static let sourceCredentials = SettingMap(
        "sources.credentials", variables: "SOURCES_CREDENTIALS_",
        help:
            "Users and passwords of origins, by names of your own: https://user:password@img.example.org, percent-encoded. They are sent to that origin alone.",
        isSecret: { _ in true })
    static let fileRoots = SettingKey(
        "sources.fileRoots", .list(of: .absolutePath), default: Defaults.sources.fileRoots,
        help: "Folders whose files may be loaded as file: sources; nothing leads out of them. Unless set, none may.")
    static let maximumBytes = SettingKey(
        "sources.maximumBytes", .byteSize(in: 1...(1 << 30)), default: Defaults.sources.maximumBytes,
        help: "The largest source.")
    static let connectTimeout = SettingKey(
        "sources.connectTimeout", .duration(), default: Defaults.sources.connectTimeout,
        help: "Time for a source's name, connection and TLS.")
    static let timeout = SettingKey(
        "sources.timeout", .duration(), default: Defaults.sources.timeout, help: "Time for a source's whole transfer.")
    static let stallTimeout = SettingKey(
        "sources.stallTimeout", .duration(), default: Defaults.sources.stallTimeout,
        help: "For how long a source may send fewer than 64 bytes a second.")
    static let maximumRedirects = SettingKey(
        "sources.maximumRedirects", .integer(in: 0...20), default: Defaults.sources.maximumRedirects,
        help: "Redirects that are followed.")
    static let resumptions = SettingKey(
        "sources.resumptions", .integer(in: 0...100), default: Defaults.sources.resumptions,
        help: "How often the rest of an answer is asked for that broke off.")
    static let sharedBytes = SettingKey(
        "sources.sharedBytes", .byteSize(in: 0...(1 << 40)), default: Defaults.sources.sharedBytes,
        help: "Memory for watermarks and overlays that are still fresh; 0 keeps none.")

    // MARK: S3

    static let s3Endpoint = SettingKey(
        "sources.s3.endpoint", .string, default: "",
        help: "The URL of the S3-compatible store of s3: sources, which need not be public; Amazon's unless set.")
    static let s3Region = SettingKey(
        "sources.s3.region", .string, default: Defaults.sources.s3.region, help: "The store's region.")
    static let s3AccessKey = SettingKey(
        "sources.s3.accessKey", .string, default: "", help: "Who signs; unless set, requests are not signed.")
    static let s3SecretKey = SettingKey(
        "sources.s3.secretKey", .string, default: "", help: "The secret that belongs to it.", isSecret: true)
    static let s3SessionToken = SettingKey(
        "sources.s3.sessionToken", .string, default: "", help: "The token of keys that are lent for a while.",
        isSecret: true)
    static let s3Style = SettingKey(
        "sources.s3.style", .oneOf, default: Defaults.sources.s3.style,
        help: "Whether the bucket stands in the path or the host; auto: in the host at Amazon, else in the path.")

    // MARK: Videos

    static let videoTime = SettingKey(
        "sources.video.time", .duration(in: .seconds(1) ... .seconds(600)), default: Defaults.sources.video.time,
        help: "Time for finding and decoding one frame of a video.")
    static let videoMemory = SettingKey(
        "sources.video.memory", .byteSize(in: (64 << 20)...(1 << 40)), default: Defaults.sources.video.memory,
        help: "Memory of the ffmpeg that does it; there are as many at once as images are rendered.")
    static let videoMaximumBytes = SettingKey(
        "sources.video.maximumBytes", .byteSize(in: 1...(1 << 32)), default: Defaults.sources.video.maximumBytes,
        help: "The largest video; it is in memory while it is loaded and while a frame is looked for.")

    // MARK: Images

    static let formats = SettingKey(
        "images.formats", .list(of: .oneOf), default: Format.allCases,
        help: "The formats of sources that are loaded, known by their bytes; initials are drawn as png.")
    static let frames = SettingKey(
        "images.frames", .integer(in: 1...65_535), default: Defaults.images.frames,
        help: "Frames of the longest animation that is decoded.")

    static let maximumPixels = SettingKey(
        "images.maximumPixels", .integer(in: 1...(1 << 40)), default: Defaults.images.sourcePixels,
        help: "Pixels of the largest source, all frames counted.")
    static let maximumDecodedBytes = SettingKey(
        "images.maximumDecodedBytes", .byteSize(in: 1...(1 << 40)), default: Defaults.images.decodedBytes,
        help: "Memory that decoding one source may take.")
    static let maximumOutputPixels = SettingKey(
        "images.maximumOutputPixels", .integer(in: 1...(1 << 32)), default: Defaults.images.outputPixels,
        help: "Pixels of the largest output.")
    static let renderTime = SettingKey(
        "images.renderTime", .duration(in: .milliseconds(1) ... .seconds(3600)), default: Defaults.images.renderTime,
        help: "Time for one rendering, from the first look at the source to the last byte of the output.")
    static let childMemory = SettingKey(
        "images.childMemory", .byteSize(in: (64 << 20)...(1 << 40)), default: Defaults.children.memory,
        help:
            "Memory of a child at most (RLIMIT_DATA). Children render animations, what takes more than 64 MiB, and what cannot be stopped half way (AVIF, HEIF, JPEG XL, SVG, PDF)."
    )

    static let tolerance = SettingKey(
        "images.tolerance", .oneOf, default: Defaults.images.tolerance,
        help: "Whether what there is of a source that ends too early is rendered, where the job does not say.")

    // MARK: Results

    static let defaultTTL = SettingKey(
        "cache.defaultTTL", .duration(in: .milliseconds(1) ... .seconds(3_155_760_000)),
        default: .seconds(Defaults.results.defaultLifetime),
        help: "Life of a result when neither the job nor the origin says how long.")
    static let cacheJitter = SettingKey(
        "cache.jitter", .double(in: 0...0.5), default: Defaults.results.jitter,
        help: "Part of a life that no job chose which is taken off at random, so that not all results go at once.")
    static let cacheBytes = SettingKey(
        "cache.maximumBytes", .byteSize(in: 0...(1 << 50)), default: Defaults.results.budget.bytes ?? 0,
        help: "Bytes that the results of one tenant may take together; what was used last stays. 0 for no limit.")
    static let cachePixels = SettingKey(
        "cache.maximumPixels", .integer(in: 0...(1 << 50)), default: Defaults.results.budget.pixels ?? 0,
        help: "Pixels that they may have together, all frames counted; 0 for no limit.")
    static let cacheCount = SettingKey(
        "cache.maximumCount", .integer(in: 0...(1 << 50)), default: Defaults.results.budget.count ?? 0,
        help: "How many results of one tenant there may be; 0 for no limit.")
    static let inlineLimit = SettingKey(
        "delivery.inlineLimit", .byteSize(in: 0...(700 << 10)), default: Defaults.results.inlineLimit,
        help: "The largest image that an event may carry; Kafka takes 1 MiB a message.")
    static let handOffTTL = SettingKey(
        "delivery.handOffTTL", .duration(in: .milliseconds(1) ... .seconds(86_400)),
        default: .seconds(Defaults.results.handOffLifetime),
        help: "Life of an image that may be read only once.")
    static let puts = SettingKey(
        "delivery.puts", .integer(in: 1...10_000), default: Defaults.worker.puts,
        help: "Images on their way at once to where jobs have them put by HTTP.")

    // MARK: Worker

    static let concurrency = SettingKey(
        "worker.concurrency", .integer(in: 0...256), default: 0,
        help: "Images rendered at once; 0 for one for each processor that it may use, by its container's limit too.")
    static let fetches = SettingKey(
        "worker.fetches", .integer(in: 1...10_000), default: Defaults.worker.fetches,
        help: "Sources on their way, or in memory waiting to be rendered.")
    static let memoryLimit = SettingKey(
        "worker.memoryLimit", .byteSize(in: 0...(1 << 40)), default: 0,
        help:
            "Memory that a worker and its children may hold together: up to 96 MiB for the process itself; of the rest a quarter for sources that wait, and three quarters for renderings, as estimated before they begin. What has no room waits, and partitions are paused; what never would ends as too_many_pixels. 0 for half of what its container or machine has."
    )
    static let window = SettingKey(
        "worker.window", .integer(in: 1...100_000), default: Defaults.worker.consumer.window,
        help: "Jobs of one partition under way at once.")
    static let windowBytes = SettingKey(
        "worker.windowBytes", .byteSize(in: 1...(1 << 40)), default: Defaults.worker.consumer.windowBytes,
        help: "What the messages of those jobs may weigh together; one that weighs more comes alone.")
    static let rebalancePatience = SettingKey(
        "worker.rebalancePatience", .duration(), default: Defaults.worker.consumer.revocationPatience,
        help: "Time to finish what was begun when the group shares its partitions anew; the whole group waits for it.")
    static let rollInterval = SettingKey(
        "worker.rollInterval", .duration(in: .milliseconds(100) ... .seconds(3600)),
        default: Defaults.worker.roll.interval,
        help: "How often a worker says that it is there; one that starts waits for the others to say so."
    )
    static let grace = SettingKey(
        "worker.grace", .duration(), default: Defaults.worker.grace,
        help: "Time to finish what was begun when asked to stop.")
    static let healthPatience = SettingKey(
        "health.patience", .duration(in: .milliseconds(100) ... .seconds(3600)),
        default: Defaults.worker.health.patience,
        help: "For how long something may be late until a worker counts as stuck.")
    static let stuckLimit = SettingKey(
        "worker.stuckLimit", .duration(in: .zero ... .seconds(86_400)),
        default: Defaults.worker.health.stuckLimit ?? .zero,
        help: "How long a worker may be stuck until it ends itself; 0 for ever.")
    static let cancelMemory = SettingKey(
        "worker.cancelMemory", .duration(in: .seconds(1) ... .seconds(86_400)),
        default: .seconds(Defaults.worker.cancelMemory),
        help: "For how long it is remembered that a job was cancelled which has not been taken yet.")
    static let cancelledJobs = SettingKey(
        "worker.cancelledJobs", .integer(in: 1...10_000_000), default: Defaults.worker.cancelledJobs,
        help: "Of how many jobs; of more the oldest are forgotten.")
    static let progressInterval = SettingKey(
        "events.progressInterval", .duration(in: .zero ... .seconds(3600)), default: Defaults.worker.progressInterval,
        help:
            "Time between two progress events of a job whose source is being loaded, and before the first; 0 for none.")
    static let strict = SettingKey(
        "jobs.strict", .bool, default: false,
        help: "Whether an unknown field makes a job invalid. Otherwise it is ignored, and named in the job's event.")
    static let maximumJobBytes = SettingKey(
        "worker.maximumJobBytes", .byteSize(in: 64...(64 << 20)), default: Defaults.worker.reader.maximumBytes,
        help: "The largest job message.")

    // MARK: HTTP

    static let httpListen = SettingKey(
        "http.listen", .list(of: .hostPort), default: [],
        help: "Addresses (0.0.0.0:9464) where a worker answers /healthz, /readyz and /metrics. Unless set, nowhere.")

    // MARK: Log

    static let logLevel = SettingKey(
        "log.level", .oneOf, default: LogLevel.info, help: "The lowest level that is logged.")
    static let logFormat = SettingKey(
        "log.format", .oneOf, default: LogStyle.auto, help: "json, text, or auto: text on a terminal, else json.")

    /// All of them, in the order in which they are listed.
    static let schema = SettingsSchema(
        prefix: "HALCYON_",
        keys: [
            brokers, prefix, group, offsetMetadata, redisURL, allow, deny, fileRoots, maximumBytes, connectTimeout,
            timeout,
            stallTimeout,
            maximumRedirects, resumptions, sharedBytes, s3Endpoint, s3Region, s3AccessKey, s3SecretKey, s3SessionToken,
            s3Style,
            videoTime, videoMemory, videoMaximumBytes,
        ] + sourceTier + [
            formats, frames, maximumPixels, maximumDecodedBytes, maximumOutputPixels,
            renderTime, childMemory, tolerance, defaultTTL, cacheJitter, cacheBytes, cachePixels, cacheCount,
            inlineLimit, handOffTTL, puts, concurrency, fetches, memoryLimit, window, windowBytes, rebalancePatience,
            rollInterval, grace,
            healthPatience, stuckLimit,
            cancelMemory, cancelledJobs, progressInterval, strict, maximumJobBytes,
        ] + guarantees + retrying + sharing + notifying + serving + streaming + tracing + [
            httpListen, logLevel, logFormat,
        ],
        maps: [
            kafkaProperties, sourceCredentials, webhookURLs, webhookSecrets, gatewayKeys, gatewayScopes, gatewayURLKeys,
        ],
        // Names the file; and what the tests and the build use.
        ignoring: ["HALCYON_CONFIG", "HALCYON_EXECUTABLE", "HALCYON_IMAGE", "HALCYON_ROOT"],
        // What Amazon's own tools read. Keys are taken whole or not at all: a token goes with its own key alone.
        fallbacks: [
            SettingFallback([
                (s3AccessKey, ["AWS_ACCESS_KEY_ID"]), (s3SecretKey, ["AWS_SECRET_ACCESS_KEY"]),
                (s3SessionToken, ["AWS_SESSION_TOKEN"]),
            ]),
            SettingFallback([(s3Region, ["AWS_REGION", "AWS_DEFAULT_REGION"])]),
            SettingFallback([(s3Endpoint, ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"])]),
        ] + tracingFallbacks)
}

/// The defaults stand with what they are defaults of.
enum Defaults {
    static let worker = WorkerOptions(kafka: KafkaProperties(brokers: ""), redis: RedisEndpoint(loopbackPort: 6379))
    static let sources = worker.sources
    static let images = worker.images
    static let results = worker.results
    static let children = RenderChildOptions()
}

/// How log lines look.
enum LogStyle: String, CaseIterable, Sendable {
    case auto, json, text
}

extension SettingKind<AddressRule> {
    /// An address, a range or a host.
    static var addressRule: Self {
        SettingKind(AddressRule.expectation, scalar: { AddressRule($0) }, write: \.description)
    }
}

extension SettingKind<HostPattern> {
    /// A host, or `*.` and the end of hosts.
    static var hostPattern: Self {
        SettingKind(
            "a host (hooks.example.org, *.example.org, 192.0.2.1)", scalar: { HostPattern($0) }, write: \.description)
    }
}
