import Formats
import HalcyonCluster
import HalcyonGateway
import HalcyonImaging
import HalcyonModel
import HalcyonNotify
import HalcyonSources
import HalcyonTelemetry
import HalcyonWorker
import ProgramSettings
import Redis
import Telemetry
import Vips

/// Everything the program can be told. Each setting is bound to one member, and its default is the member's own, which
/// in most cases stands in the options of a part.
struct ProgramOptions: Sendable {
    var brokers = [HostPort(host: "127.0.0.1", port: 9092)]
    var kafkaProperties: [String: String] = [:]
    var redisURL = "redis://127.0.0.1:6379"
    var worker = WorkerOptions(kafka: KafkaProperties(brokers: ""), redis: RedisEndpoint(loopbackPort: 6379))

    var allow: [AddressRule] = []
    var deny: [AddressRule] = []
    var sourceCredentials: [String: String] = [:]
    var s3Endpoint = ""
    var s3AccessKey = ""
    var s3SecretKey = ""
    var s3SessionToken = ""
    var formats = Format.allCases
    var renderChildren = RenderChildOptions()

    var delivery = Guarantee.atLeastOnce
    var transactions = TransactionOptions()
    /// The worker's own name; empty for a random one.
    var instance = ""
    var isStaticMember = false

    var notifiesRedis = true
    var pubSub = PubSubOptions()
    var webhooks = WebhookOptions()
    var webhookKinds = Event.Kind.allCases.filter(WebhookOptions().kinds.contains)
    var webhookURLs: [String: String] = [:]
    /// Of webhooks that have one of their own, by name.
    var webhookOwnSecrets: [String: String] = [:]
    /// Of the others.
    var webhookSecrets: [WebhookSecret] = []
    var webhookHosts: [HostPattern] = []

    var gateway = GatewayOptions(kafka: KafkaProperties(brokers: ""), redis: RedisEndpoint(loopbackPort: 6379))
    var gatewayListen = [HostPort(host: "127.0.0.1", port: 8080)]
    var gatewayKeys: [String: String] = [:]
    var gatewayScopes: [String: String] = [:]
    var gatewayURLKeys: [String: String] = [:]

    var traces = TraceOptions(endpoint: "")
    var tracesProtocol = TraceProtocol.httpJSON
    var tracesHeaders: [NamedText] = []
    var tracesService = "halcyon"
    var tracesResource: [NamedText] = []

    var httpListen: [HostPort] = []
    var logLevel = LogLevel.info
    var logFormat = LogStyle.auto

    init() {
        // 0 is for what the machine has.
        worker.concurrency = 0
        worker.memoryLimit = 0
        gateway.limits.bodyBytes = 64 << 20
    }
}

/// The delivery guarantee of each job's terminal event.
enum Guarantee: String, CaseIterable, Sendable {
    case atLeastOnce = "at-least-once"
    case exactlyOnce = "exactly-once"
}

/// The format of log lines.
enum LogStyle: String, CaseIterable, Sendable {
    case auto, json, text
}

extension ProgramOptions {
    /// Every setting there is. The names are Halcyon's interface: scripts and charts rely on them.
    static let schema = SettingsSchema(
        prefix: "HALCYON_", defaults: ProgramOptions(),
        settings: clusterSettings + sourceSettings + workerSettings + notifySettings + gatewaySettings + traceSettings
            + processSettings,
        maps: maps,
        // Keys are taken from Amazon's variables whole or not at all: a token goes with its own key alone.
        together: [[\.s3AccessKey, \.s3SecretKey, \.s3SessionToken]],
        // Names the file; and what the tests and the build use.
        ignoring: ["HALCYON_CONFIG", "HALCYON_EXECUTABLE", "HALCYON_IMAGE", "HALCYON_ROOT"])

    /// The addresses of Kafka and Redis.
    private static let clusterSettings: [Setting<ProgramOptions>] = [
        Setting("kafka.brokers", \.brokers, .list(of: .hostPort)).help("Kafka's brokers to begin with."),
        Setting("kafka.prefix", \.worker.topics.prefix, .text).help("What the names of all topics begin with."),
        Setting("kafka.group", \.worker.group, .text).help("The consumer group that the workers share."),
        Setting("kafka.offsetMetadata", \.worker.consumer.metadataLimit, .byteSize(in: 0...32_767))
            .help(
                "Metadata of a commit, which tells what has ended beyond its offset; brokers take offset.metadata.max.bytes. 0 for none."
            ),
        Setting("redis.url", \.redisURL, .text)
            .help(
                "Redis: redis://host:port, redis+cluster://host:port,…, redis+sentinel://host:port,…/service or unix:/path; with rediss TLS, where hiredis has it."
            ),
    ]

    /// Probes and logs.
    private static let processSettings: [Setting<ProgramOptions>] = [
        Setting("http.listen", \.httpListen, .list(of: .hostPort))
            .help(
                "Addresses (0.0.0.0:9464) where a worker answers /healthz, /readyz and /metrics. Unless set, nowhere."),
        Setting("log.level", \.logLevel, .oneOf).help("The lowest level that is logged."),
        Setting("log.format", \.logFormat, .oneOf).help("json, text, or auto: text on a terminal, else json."),
    ]

    /// Settings that hold names of the user's own.
    private static let maps: [SettingMap<ProgramOptions>] = [
        SettingMap("kafka.properties", \.kafkaProperties, variables: "KAFKA_PROPERTY_")
            .help("Any property of librdkafka, such as security.protocol."),
        SettingMap("sources.credentials", \.sourceCredentials, variables: "SOURCES_CREDENTIALS_", isSecret: true)
            .help(
                "Users and passwords of origins, by names of your own: https://user:password@img.example.org, percent-encoded. They are sent to that origin alone."
            ),
        SettingMap("webhooks.urls", \.webhookURLs, variables: "WEBHOOKS_URL_", isSecret: false)
            .help("Webhooks by name: their http or https URLs, which need not be public."),
        SettingMap("webhooks.secrets", \.webhookOwnSecrets, variables: "WEBHOOKS_SECRET_", isSecret: true)
            .help("Secrets of webhooks by name, where they have one of their own."),
        SettingMap("gateway.keys", \.gatewayKeys, variables: "GATEWAY_KEYS_", isSecret: true)
            .help(
                "Keys by name: the secrets that their bearers send, each of 16 or more visible ASCII characters, drawn at random."
            ),
        SettingMap("gateway.scopes", \.gatewayScopes, variables: "GATEWAY_SCOPES_", isSecret: false)
            .help(
                "What the bearer of a key may do, by its name: of submit, read and admin, with commas between them; submit,read unless set."
            ),
        SettingMap("gateway.urlKeys", \.gatewayURLKeys, variables: "GATEWAY_URL_KEYS_", isSecret: true)
            .help(
                "Secrets of signed URLs by their keyId, each of 32 or more characters; several while one takes another's place. Without gateway.keys such URLs are then all that lets in."
            ),
    ]
}
