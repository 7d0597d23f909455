import Glibc
import HalcyonCluster
import HalcyonCoding
import HalcyonImaging
import HalcyonModel
import HalcyonNotifications
import HalcyonResults
import HalcyonSources
import HalcyonTelemetry
import HalcyonWorker
import ProgramSettings
import Redis
import Subprocess
import Telemetry
import Vips

/// The effective settings and the options derived from them.
final class Configuration: Sendable {
    let settings: Settings<ProgramOptions>
    private let s3: S3Options
    private let credentials: [Origin: OriginCredentials]
    /// The presets of the settings.
    let presets: [Preset]
    /// The options of the persistent result store; nil if there is none.
    let resultStore: ResultStoreOptions?
    let webhookTargets: WebhookTargets
    /// The hooks that are notified of purges, by name.
    let purgeHooks: [String: PurgeHook]
    /// The trace options; nil if tracing is disabled.
    let traces: TraceOptions?

    /// Reads flags, environment and the file named by `HALCYON_CONFIG` or `--config`.
    /// - Throws: ``SettingsError``, ``ConfigurationError``.
    init(flags: [SettingFlag], file path: String?) throws {
        let environment = environmentVariables()
        let path = path ?? environment["HALCYON_CONFIG"]
        let file = try path.map { path throws(SettingsError) in try SettingsFile(path: path) }
        settings = try Settings(ProgramOptions.schema, flags: flags, environment: environment, file: file)
        guard !settings.options.formats.isEmpty else {
            throw ConfigurationError("images.formats: expected at least one format")
        }
        try Self.checkDelays(settings.options.worker.topics)
        try Self.checkSchedule(settings.options.worker)
        presets = try Self.presets(
            settings.options.presetTexts,
            checkedBy: settings.options.worker.reader.withExtensions(Self.extensions, Self.providers))
        s3 = try S3Options(settings, .sources)
        resultStore = try Self.resultStore(settings)
        credentials = try Self.credentials(settings.options)
        webhookTargets = try WebhookTargets(settings.options)
        purgeHooks = try PurgeHook.all(settings.options)
        traces = try TraceOptions(settings)
        try checkGuarantee()
        try checkProgressInterval()
        try checkArchive()
    }

    /// The options with the values of the settings.
    var options: ProgramOptions { settings.options }

    var topics: Topics { options.worker.topics }

    var kafka: KafkaProperties {
        KafkaProperties(
            brokers: options.brokers.map(\.description).joined(separator: ","), properties: options.kafkaProperties)
    }

    /// Creates the Redis endpoint.
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

    /// Parses the credentials of origins.
    /// - Throws: ``ConfigurationError`` that names the setting without its value.
    private static func credentials(_ options: ProgramOptions) throws(ConfigurationError) -> [Origin: OriginCredentials]
    {
        var all: [Origin: OriginCredentials] = [:]
        for (name, text) in options.sourceCredentials.sorted(by: { $0.key < $1.key }) {
            guard let credentials = OriginCredentials(text) else {
                throw ConfigurationError(
                    "sources.credentials.\(name): expected an origin with a user and a password, both percent-encoded, "
                        + "such as https://user:password@img.example.org"
                )
            }
            guard all.updateValue(credentials, forKey: credentials.origin) == nil else {
                throw ConfigurationError("sources.credentials.\(name): \(credentials.origin) already has credentials")
            }
        }
        return all
    }

    /// Prepares libvips in this process: disables the loaders of all other formats, and loads the fonts. Call it before
    /// an image is opened.
    /// - Throws: ``ConfigurationError`` if the folder of fonts cannot be read.
    func prepareImaging() throws(ConfigurationError) {
        VipsLibrary.allow(Set(options.formats))
        guard Fonts.use(folder: options.fonts) || options.fonts == ProgramOptions().fonts else {
            throw ConfigurationError("images.fonts: \(options.fonts) is not a folder that can be read")
        }
    }

    /// The extensions that the host program registered.
    static var extensions: Extensions { HalcyonProgram.extensions.withLock { $0 } }
    static var providers: CustomProviders { HalcyonProgram.providers.withLock { $0 } }

    /// The job decoder of commands, with the presets of the settings. A worker creates its own from the options.
    var jobReader: JobDecoder {
        var reader = options.worker.reader.withExtensions(Self.extensions, Self.providers)
        reader.findPreset = { [presets] name in presets.first { $0.name == name } }
        return reader
    }

    /// The options of the detector, which must have the name that keys contain.
    var detector: DetectorOptions {
        var detector = options.worker.detector
        detector.name = options.worker.reader.detector
        return detector
    }

    /// Creates the options of a worker.
    /// - Throws: ``ConfigurationError``.
    func worker() throws -> WorkerOptions {
        var worker = options.worker
        worker.kafka = kafka
        worker.redis = try redis()
        worker.presets = presets
        worker.reader.requiresPreset = options.presetsOnly
        worker.reader.checkWebhook = { [webhookTargets] webhook throws(JobError) in
            _ = try webhookTargets.endpoint(of: webhook)
        }
        worker.sources = sources
        worker.resultStore = resultStore
        worker.origins.lease = worker.leases.duration
        if worker.memoryLimit == 0 { worker.memoryLimit = ResourceLimits.memory / 2 }
        worker.concurrency = concurrency
        worker.heartbeat.version = Version.number
        worker.renderChildren = options.renderChildren
        worker.detector = detector
        worker.extensions = Self.extensions
        worker.providers = Self.providers
        let instance = options.instance.isEmpty ? nil : options.instance
        if options.isStaticMember { worker.staticMember = instance }
        if options.delivery == .exactlyOnce {
            worker.transactions = options.transactions
            worker.transactions?.instance = instance
        }
        return worker
    }

    /// Checks that delays are ascending.
    /// - Throws: ``ConfigurationError`` for delays that are not.
    private static func checkDelays(_ topics: Topics) throws(ConfigurationError) {
        for (name, delays) in [
            ("retry.delays", topics.retryDelays), ("schedule.delays", topics.startDelays),
            ("webhooks.delays", topics.webhookDelays),
        ] {
            guard zip(delays, delays.dropFirst()).allSatisfy({ $0 < $1 }) else {
                throw ConfigurationError("\(name): expected ascending delays, such as 10s,1m,10m")
            }
        }
        for (name, delays) in [("schedule.delays", topics.startDelays), ("webhooks.delays", topics.webhookDelays)] {
            guard !delays.isEmpty else { throw ConfigurationError("\(name): expected at least one delay") }
        }
    }

    /// Checks that a job in a delay topic can be cancelled until it leaves it.
    /// - Throws: ``ConfigurationError`` if a delay is too long.
    private static func checkSchedule(_ options: WorkerOptions) throws(ConfigurationError) {
        let longest = options.topics.startDelays.max() ?? .zero
        guard longest / .seconds(1) < options.cancelMemory else {
            throw ConfigurationError(
                "schedule.delays: expected delays shorter than worker.cancellationRetention, so that jobs can be "
                    + "cancelled while they wait")
        }
    }

    /// Checks settings that depend on each other.
    /// - Throws: ``ConfigurationError`` for an invalid combination.
    private func checkGuarantee() throws(ConfigurationError) {
        if options.isStaticMember, options.instance.isEmpty {
            throw ConfigurationError("worker.staticMember: requires a name; set worker.instance")
        }
    }

    /// Checks the interval of progress events.
    /// - Throws: ``ConfigurationError`` for an interval that would flood the event topic.
    private func checkProgressInterval() throws(ConfigurationError) {
        let interval = options.worker.progressInterval
        guard interval == .zero || interval >= .milliseconds(100) else {
            throw ConfigurationError("events.progressInterval: expected at least 100ms, or 0 for no progress events")
        }
    }

    /// Checks the sizes of archive copies.
    /// - Throws: ``ConfigurationError`` for copies that would not be smaller than their sources, or not be allowed.
    private func checkArchive() throws(ConfigurationError) {
        let (archive, limit) = (options.worker.archive, options.worker.images.outputPixels)
        guard archive.minimumPixels == 0 || archive.pixels < archive.minimumPixels else {
            throw ConfigurationError("sources.archive.pixels: expected less than sources.archive.minimumPixels")
        }
        guard archive.minimumPixels == 0 || archive.pixels <= limit else {
            throw ConfigurationError("sources.archive.pixels: expected at most images.maximumOutputPixels, \(limit)")
        }
    }

    /// The number of concurrent renderings: the setting, or else the number of processors.
    var concurrency: Int { options.worker.concurrency > 0 ? options.worker.concurrency : ResourceLimits.processors }

    /// Creates a log writer for standard error. The caller shuts it down.
    func logWriter() -> LogWriter {
        let isTerminal = isatty(STDERR_FILENO) == 1
        let isText = options.logFormat == .text || (options.logFormat == .auto && isTerminal)
        return LogWriter(format: isText ? .text(isColoured: isTerminal) : .json)
    }
}

/// An error in settings that are well-formed, but have an invalid value or combination.
struct ConfigurationError: Error, CustomStringConvertible {
    let description: String
    /// True if another socket listens on the address of a setting.
    let isAddressInUse: Bool

    init(_ description: String, isAddressInUse: Bool = false) {
        self.description = description
        self.isAddressInUse = isAddressInUse
    }
}
