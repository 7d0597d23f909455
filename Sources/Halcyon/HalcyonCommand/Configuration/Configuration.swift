import Glibc
import HalcyonCluster
import HalcyonImaging
import HalcyonModel
import HalcyonNotify
import HalcyonSources
import HalcyonTelemetry
import HalcyonWire
import HalcyonWorker
import Processes
import ProgramSettings
import Redis
import Telemetry
import Vips

/// The effective settings, and what is made from them.
struct Configuration {
    let settings: Settings<ProgramOptions>
    private let s3: S3Options
    private let credentials: [Origin: OriginCredentials]
    let webhookTargets: WebhookTargets
    /// nil when nothing is recorded.
    let traces: TraceOptions?

    /// Reads flags, environment and the file that `HALCYON_CONFIG` or `--config` names.
    /// - Throws: ``SettingsError``, ``ConfigurationError``.
    init(flags: [SettingFlag], file path: String?) throws {
        let environment = environmentVariables()
        let path = path ?? environment["HALCYON_CONFIG"]
        let file = try path.map { path throws(SettingsError) in try SettingsFile(path: path) }
        settings = try Settings(ProgramOptions.schema, flags: flags, environment: environment, file: file)
        guard !settings.options.formats.isEmpty else {
            throw ConfigurationError("images.formats: without any format no image can be loaded")
        }
        try Self.checkDelays(settings.options.worker.topics)
        s3 = try S3Options(settings)
        credentials = try Self.credentials(settings.options)
        webhookTargets = try WebhookTargets(settings.options)
        traces = try TraceOptions(settings)
        try checkGuarantee()
        try checkProgressInterval()
    }

    /// The options with the settings' values.
    var options: ProgramOptions { settings.options }

    var topics: Topics { options.worker.topics }

    var kafka: KafkaProperties {
        KafkaProperties(
            brokers: options.brokers.map(\.description).joined(separator: ","), properties: options.kafkaProperties)
    }

    /// - Throws: ``ConfigurationError`` that names the setting.
    func redis() throws -> RedisEndpoint {
        do throws(RedisError) {
            return try RedisEndpoint(options.redisURL)
        } catch {
            throw ConfigurationError("redis.url: \(error)")
        }
    }

    var sources: SourceOptions {
        var sources = options.worker.sources
        sources.policy = AddressPolicy(allow: options.allow, deny: options.deny)
        sources.s3 = s3
        sources.credentials = credentials
        sources.userAgent = "Halcyon/\(Version.number)"
        return sources
    }

    /// - Throws: ``ConfigurationError`` that names the setting and says nothing of its value.
    private static func credentials(_ options: ProgramOptions) throws(ConfigurationError) -> [Origin: OriginCredentials]
    {
        var all: [Origin: OriginCredentials] = [:]
        for (name, text) in options.sourceCredentials.sorted(by: { $0.key < $1.key }) {
            guard let credentials = OriginCredentials(text) else {
                throw ConfigurationError(
                    "sources.credentials.\(name): expected an origin with a user and a password, both percent-encoded, such as https://user:password@img.example.org"
                )
            }
            guard all.updateValue(credentials, forKey: credentials.origin) == nil else {
                throw ConfigurationError("sources.credentials.\(name): \(credentials.origin) has credentials already")
            }
        }
        return all
    }

    /// Closes the loaders of all other formats, for this process. To be called before an image is opened.
    func openFormats() { VipsLibrary.allow(Set(options.formats)) }

    /// What the host program registered.
    var extensions: Extensions { HalcyonCommand.extensions.withLock { $0 } }
    var providers: CustomProviders { HalcyonCommand.providers.withLock { $0 } }

    /// What commands read jobs with. A worker makes its own of the options.
    var jobReader: JobReader { options.worker.reader.knowing(extensions, providers) }

    /// - Throws: ``ConfigurationError``.
    func worker() throws -> WorkerOptions {
        var worker = options.worker
        worker.kafka = kafka
        worker.redis = try redis()
        worker.reader.checkWebhook = { [webhookTargets] webhook throws(Failure) in
            _ = try webhookTargets.endpoint(of: webhook)
        }
        worker.sources = sources
        worker.origins.lease = worker.leases.duration
        if worker.memoryLimit == 0 { worker.memoryLimit = MachineShare.memory / 2 }
        worker.concurrency = concurrency
        worker.roll.version = Version.number
        worker.renderChildren = options.renderChildren
        worker.extensions = extensions
        worker.providers = providers
        let instance = options.instance.isEmpty ? nil : options.instance
        if options.isStaticMember { worker.staticMember = instance }
        if options.delivery == .exactlyOnce {
            worker.transactions = options.transactions
            worker.transactions?.instance = instance
        }
        return worker
    }

    /// - Throws: ``ConfigurationError`` for waits that do not rise.
    private static func checkDelays(_ topics: Topics) throws(ConfigurationError) {
        for (name, delays) in [("retry.delays", topics.retryDelays), ("webhooks.delays", topics.webhookDelays)] {
            guard zip(delays, delays.dropFirst()).allSatisfy({ $0 < $1 }) else {
                throw ConfigurationError("\(name): expected waits that rise, such as 10s,1m,10m")
            }
        }
        guard !topics.webhookDelays.isEmpty else {
            throw ConfigurationError("webhooks.delays: expected one wait at least")
        }
    }

    /// - Throws: ``ConfigurationError`` for settings that do not go together.
    private func checkGuarantee() throws(ConfigurationError) {
        if options.isStaticMember, options.instance.isEmpty {
            throw ConfigurationError("worker.staticMember: a static member needs a name, worker.instance")
        }
    }

    /// - Throws: ``ConfigurationError`` for an interval that would flood the topic of events.
    private func checkProgressInterval() throws(ConfigurationError) {
        let interval = options.worker.progressInterval
        guard interval == .zero || interval >= .milliseconds(100) else {
            throw ConfigurationError("events.progressInterval: expected at least 100ms, or 0 for no progress events")
        }
    }

    /// How many pictures a worker renders at once: as many as it has processors, unless it is set.
    var concurrency: Int { options.worker.concurrency > 0 ? options.worker.concurrency : MachineShare.processors }

    /// Writes to standard error; the writer is shut down by whoever asked for it.
    func logWriter() -> LogWriter {
        let isTerminal = isatty(STDERR_FILENO) == 1
        let isText = options.logFormat == .text || (options.logFormat == .auto && isTerminal)
        return LogWriter(format: isText ? .text(isColoured: isTerminal) : .json)
    }
}

/// Settings that read well and make no sense.
struct ConfigurationError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
