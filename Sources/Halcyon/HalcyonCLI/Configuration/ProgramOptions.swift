import Formats
import HalcyonCluster
import HalcyonGateway
import HalcyonImaging
import HalcyonModel
import HalcyonNotifications
import HalcyonResults
import HalcyonSources
import HalcyonTelemetry
import HalcyonWorker
import ProgramSettings
import Redis
import Telemetry
import Vips

/// The options of the program. Each setting is bound to one member and has its initial value as the default. Most
/// defaults are defined in the options of a component.
struct ProgramOptions: Sendable {
    var brokers = [HostPort(host: "127.0.0.1", port: 9092)]
    var kafkaProperties: [String: String] = [:]
    var redisURL = "redis://127.0.0.1:6379"
    var worker = WorkerOptions(kafka: KafkaProperties(brokers: ""), redis: RedisEndpoint(loopbackPort: 6379))

    /// The presets by name: JSON, or the path of a file.
    var presetTexts: [String: String] = [:]
    var presetsOnly = false

    var allow: [AddressRule] = []
    var deny: [AddressRule] = []
    var sourceCredentials: [String: String] = [:]
    var sourceS3 = S3Settings()
    var formats = Format.allCases
    var fonts = "/usr/share/fonts"
    var renderChildren = RenderProcessOptions()

    var resultStoreLocation: ResultStoreLocation?
    var resultStore = ResultStoreOptions(.folder("/"))
    var resultS3 = S3Settings()

    var delivery = DeliverySemantics.atLeastOnce
    var transactions = TransactionOptions()
    /// The name of the worker; empty for a random one.
    var instance = ""
    var isStaticMember = false

    var notifiesRedis = true
    var pubSub = PubSubOptions()
    var webhooks = WebhookOptions()
    var webhookKinds = Event.Kind.allCases.filter(WebhookOptions().kinds.contains)
    var webhookURLs: [String: String] = [:]
    /// The secrets of named webhooks that have a separate one.
    var webhookOwnSecrets: [String: String] = [:]
    /// The secrets of all other webhooks.
    var webhookSecrets: [WebhookSecret] = []
    var webhookHosts: [HostPattern] = []
    /// The definitions of hooks that are notified of purges, by name.
    var purgeHooks: [String: String] = [:]

    var gateway = GatewayOptions(kafka: KafkaProperties(brokers: ""), redis: RedisEndpoint(loopbackPort: 6379))
    var gatewayListen = [HostPort(host: "127.0.0.1", port: 8080)]
    var gatewayKeys: [String: String] = [:]
    var gatewayScopes: [String: String] = [:]
    var gatewayURLKeys: [String: String] = [:]
    var imgproxyKeys: [String: String] = [:]
    var thumborKeys: [String: String] = [:]
    var imagorKeys: [String: String] = [:]
    var imgproxyFormatQualities = ["webp=79", "avif=63", "jxl=77"]

    var traces = TraceOptions(endpoint: "")
    var tracesProtocol = TraceProtocol.httpJSON
    var tracesHeaders: [NamedText] = []
    var tracesService = "halcyon"
    var tracesResource: [NamedText] = []

    var httpListen: [HostPort] = []
    var logLevel = LogLevel.info
    var logFormat = LogStyle.auto

    init() {
        // 0 means that the resources of the machine are used.
        worker.concurrency = 0
        worker.memoryLimit = 0
        worker.sourceTier.redisBudget = .automatic
        gateway.limits.bodyBytes = 64 << 20
    }
}

/// The delivery guarantee of each job's terminal event.
enum DeliverySemantics: String, CaseIterable, Sendable {
    case atLeastOnce = "at-least-once"
    case exactlyOnce = "exactly-once"
}

/// The format of log lines.
enum LogStyle: String, CaseIterable, Sendable {
    case auto, json, text
}

extension ProgramOptions {
    /// The schema of all settings. The names are a public interface that scripts and charts rely on.
    static let schema = SettingsSchema(
        prefix: "HALCYON_", defaults: ProgramOptions(),
        settings: clusterSettings + presetSettings + sourceSettings + s3Settings(.sources, of: "s3: sources")
            + workerSettings
            + resultStoreSettings + s3Settings(.results, of: "results") + notifySettings + gatewaySettings
            + compatibleURLSettings
            + traceSettings + processSettings,
        maps: maps + compatibleURLMaps,
        together: [S3SettingMembers.sources.credentials, S3SettingMembers.results.credentials],
        // The variable for the file, and variables of tests and the build.
        ignoring: ["HALCYON_CONFIG", "HALCYON_EXECUTABLE", "HALCYON_IMAGE", "HALCYON_ROOT"])

    /// Settings of Kafka and Redis.
    private static let clusterSettings: [Setting<ProgramOptions>] = [
        Setting("kafka.brokers", \.brokers, .list(of: .hostPort)).help("Addresses of the Kafka bootstrap brokers."),
        Setting("kafka.prefix", \.worker.topics.prefix, .text).help("Prefix of the names of all topics."),
        Setting("kafka.group", \.worker.group, .text).help("Consumer group of the workers."),
        Setting("kafka.offsetMetadata", \.worker.consumer.metadataLimit, .byteSize(in: 0...32_767))
            .help(
                """
                Maximum size of the commit metadata that lists completed offsets beyond the committed one. Brokers \
                accept up to offset.metadata.max.bytes. 0 for none.
                """),
        Setting("redis.url", \.redisURL, .text)
            .help(
                """
                Redis URL: redis://host:port, redis+cluster://host:port,…, redis+sentinel://host:port,…/service or \
                unix:/path. Schemes with rediss use TLS if hiredis supports it. ?timeout=5s at the end is the longest \
                wait for a reply (default: 2s).
                """),
    ]

    /// Settings of health checks and logs.
    private static let processSettings: [Setting<ProgramOptions>] = [
        Setting("http.listen", \.httpListen, .list(of: .hostPort))
            .help(
                """
                Addresses (0.0.0.0:9464) on which a worker or gateway serves /healthz, /readyz and /metrics. None by \
                default.
                """),
        Setting("log.level", \.logLevel, .oneOf).help("Minimum level of log messages."),
        Setting("log.format", \.logFormat, .oneOf)
            .help("Format of log messages: json, text, or auto (text on a terminal, else json)."),
    ]

    /// Settings with user-defined names.
    private static let maps: [SettingMap<ProgramOptions>] = [
        presetMap,
        SettingMap("kafka.properties", \.kafkaProperties, variables: "KAFKA_PROPERTY_")
            .help("Any librdkafka property, such as security.protocol."),
        SettingMap("sources.credentials", \.sourceCredentials, variables: "SOURCES_CREDENTIALS_", isSecret: true)
            .help(
                """
                Credentials of origins, under arbitrary names: https://user:password@img.example.org, \
                percent-encoded. They are sent only to that origin.
                """),
        SettingMap("webhooks.urls", \.webhookURLs, variables: "WEBHOOKS_URL_", isSecret: false)
            .help("http or https URLs of named webhooks, which may be private."),
        SettingMap("webhooks.secrets", \.webhookOwnSecrets, variables: "WEBHOOKS_SECRET_", isSecret: true)
            .help("Signing secrets of named webhooks."),
        SettingMap("purge.hooks", \.purgeHooks, variables: "PURGE_HOOKS_", isSecret: true)
            .help(
                """
                HTTP requests by name that notify CDNs of purges. Each is a JSON object with a template (cloudflare, \
                fastly, cloudfront, varnish) and its parameters, or with url, method, headers and body.
                """),
        SettingMap("gateway.keys", \.gatewayKeys, variables: "GATEWAY_KEYS_", isSecret: true)
            .help("Secrets of API keys by name, each of at least 16 visible ASCII characters, chosen at random."),
        SettingMap("gateway.scopes", \.gatewayScopes, variables: "GATEWAY_SCOPES_", isSecret: false)
            .help(
                "Scopes of API keys by name, separated by commas: submit, read and admin. The default is submit,read."),
        SettingMap("gateway.urlKeys", \.gatewayURLKeys, variables: "GATEWAY_URL_KEYS_", isSecret: true)
            .help(
                """
                Secrets of signed URLs by keyId, each of at least 32 characters; several allow rotation. Without \
                gateway.keys, signed URLs are the only form of access.
                """),
    ]
}
