import Glibc
import HalcyonBudget
import HalcyonCluster
import HalcyonImaging
import HalcyonModel
import HalcyonNotify
import HalcyonRendering
import HalcyonSources
import HalcyonTraces
import HalcyonWire
import HalcyonWorker
import Processes
import Redis
import Settings
import Telemetry
import Vips

/// The effective settings, and what is made from them.
struct Configuration {
    let settings: Settings
    private let s3: S3Options
    private let credentials: [Origin: OriginCredentials]
    let webhookTargets: WebhookTargets
    /// nil when nothing is recorded.
    let traces: TraceOptions?

    /// Reads flags, environment and the file that `HALCYON_CONFIG` or `--config` names.
    /// - Throws: ``SettingsError``, ``ConfigurationError``.
    init(flags: [SettingFlag], file path: String?) throws {
        let environment = Self.environment
        let path = path ?? environment["HALCYON_CONFIG"]
        let file = try path.map { path throws(SettingsError) in try SettingsFile(path: path) }
        settings = try Settings(Keys.schema, flags: flags, environment: environment, file: file)
        guard !settings[Keys.formats].isEmpty else {
            throw ConfigurationError("images.formats: without any format no image can be loaded")
        }
        try Self.checkRetries(settings)
        s3 = try S3Options(settings)
        credentials = try Self.credentials(settings)
        webhookTargets = try WebhookTargets(settings)
        traces = try TraceOptions(settings)
        try checkGuarantee()
        try checkProgressInterval()
    }

    private static var environment: [String: String] {
        var variables: [String: String] = [:]
        var next = environ
        while let text = next.pointee {
            let pair = String(cString: text).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            if pair.count == 2 { variables[String(pair[0])] = String(pair[1]) }
            next += 1
        }
        return variables
    }

    var topics: Topics {
        Topics(
            prefix: settings[Keys.prefix], retryDelays: settings[Keys.retryDelays],
            webhookDelays: settings[Keys.webhookDelays])
    }

    var kafka: KafkaProperties {
        KafkaProperties(
            brokers: settings[Keys.brokers].map(\.description).joined(separator: ","),
            properties: settings[Keys.kafkaProperties])
    }

    /// - Throws: ``ConfigurationError`` that names the setting.
    func redis() throws -> RedisEndpoint {
        do throws(RedisError) {
            return try RedisEndpoint(settings[Keys.redisURL])
        } catch {
            throw ConfigurationError("redis.url: \(error)")
        }
    }

    var sources: SourceOptions {
        var options = SourceOptions()
        options.policy = AddressPolicy(allow: settings[Keys.allow], deny: settings[Keys.deny])
        options.fileRoots = settings[Keys.fileRoots]
        options.maximumBytes = settings[Keys.maximumBytes]
        options.connectTimeout = settings[Keys.connectTimeout]
        options.timeout = settings[Keys.timeout]
        options.stallTimeout = settings[Keys.stallTimeout]
        options.maximumRedirects = settings[Keys.maximumRedirects]
        options.resumptions = settings[Keys.resumptions]
        options.sharedBytes = settings[Keys.sharedBytes]
        options.s3 = s3
        options.credentials = credentials
        options.video.time = settings[Keys.videoTime]
        options.video.memory = settings[Keys.videoMemory]
        options.video.maximumBytes = settings[Keys.videoMaximumBytes]
        options.userAgent = "Halcyon/\(Version.number)"
        return options
    }

    /// - Throws: ``ConfigurationError`` that names the setting and says nothing of its value.
    private static func credentials(_ settings: Settings) throws(ConfigurationError) -> [Origin: OriginCredentials] {
        var all: [Origin: OriginCredentials] = [:]
        for (name, text) in settings[Keys.sourceCredentials].sorted(by: { $0.key < $1.key }) {
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

    var images: ImageLimits {
        ImageLimits(
            sourcePixels: settings[Keys.maximumPixels], frames: settings[Keys.frames],
            decodedBytes: settings[Keys.maximumDecodedBytes],
            outputPixels: settings[Keys.maximumOutputPixels], renderTime: settings[Keys.renderTime],
            tolerance: settings[Keys.tolerance])
    }

    var renderChildren: RenderChildOptions {
        var options = RenderChildOptions()
        options.memory = settings[Keys.childMemory]
        return options
    }

    /// Closes the loaders of all other formats, for this process. To be called before an image is opened.
    func openFormats() { VipsLibrary.allow(Set(settings[Keys.formats])) }

    /// What the host program registered.
    var extensions: Extensions { HalcyonCommand.extensions.withLock { $0 } }
    var providers: CustomProviders { HalcyonCommand.providers.withLock { $0 } }

    /// What commands read jobs with. A worker makes its own of the options.
    var jobReader: JobReader { plainReader.knowing(extensions, providers) }

    private var plainReader: JobReader {
        JobReader(maximumBytes: settings[Keys.maximumJobBytes], isStrict: settings[Keys.strict])
    }

    /// - Throws: ``ConfigurationError``.
    func worker() throws -> WorkerOptions {
        var options = WorkerOptions(topics: topics, kafka: kafka, redis: try redis())
        options.group = settings[Keys.group]
        options.reader = plainReader
        options.reader.checkWebhook = { [webhookTargets] webhook throws(Failure) in
            _ = try webhookTargets.endpoint(of: webhook)
        }
        options.retries = retries
        options.consumer.window = settings[Keys.window]
        options.consumer.windowBytes = settings[Keys.windowBytes]
        options.consumer.metadataLimit = settings[Keys.offsetMetadata]
        options.consumer.revocationPatience = settings[Keys.rebalancePatience]
        options.sources = sources
        options.sourceTier = sourceTier
        options.origins = origins
        options.fetches = settings[Keys.fetches]
        options.memoryLimit = settings[Keys.memoryLimit] > 0 ? settings[Keys.memoryLimit] : MachineShare.memory / 2
        setSharing(&options)
        setGuarantee(&options)
        options.concurrency = concurrency
        options.roll.interval = settings[Keys.rollInterval]
        options.roll.version = Version.number
        options.images = images
        options.renderChildren = renderChildren
        options.extensions = extensions
        options.providers = providers
        options.results.defaultLifetime = settings[Keys.defaultTTL] / .seconds(1)
        options.results.jitter = settings[Keys.cacheJitter]
        options.results.budget = budget
        options.results.handOffLifetime = settings[Keys.handOffTTL] / .seconds(1)
        options.results.inlineLimit = settings[Keys.inlineLimit]
        options.puts = settings[Keys.puts]
        options.grace = settings[Keys.grace]
        options.health.patience = settings[Keys.healthPatience]
        let stuckLimit = settings[Keys.stuckLimit]
        options.health.stuckLimit = stuckLimit > .zero ? stuckLimit : nil
        options.cancelMemory = settings[Keys.cancelMemory] / .seconds(1)
        options.cancelledJobs = settings[Keys.cancelledJobs]
        options.progressInterval = settings[Keys.progressInterval]
        return options
    }

    /// - Throws: ``ConfigurationError`` for an interval that would flood the topic of events.
    private func checkProgressInterval() throws(ConfigurationError) {
        let interval = settings[Keys.progressInterval]
        guard interval == .zero || interval >= .milliseconds(100) else {
            throw ConfigurationError("events.progressInterval: expected at least 100ms, or 0 for no progress events")
        }
    }

    /// What the results of one tenant may take together; 0 is no limit.
    var budget: Budget {
        func limit(_ key: SettingKey<Int>) -> Int? { settings[key] > 0 ? settings[key] : nil }
        return Budget(
            bytes: limit(Keys.cacheBytes), pixels: limit(Keys.cachePixels), count: limit(Keys.cacheCount))
    }

    /// How many pictures a worker renders at once: as many as it has processors, unless it is set.
    var concurrency: Int {
        settings[Keys.concurrency] > 0 ? settings[Keys.concurrency] : MachineShare.processors
    }

    /// Writes to standard error; the writer is shut down by whoever asked for it.
    func logWriter() -> LogWriter {
        let isTerminal = isatty(STDERR_FILENO) == 1
        let isText = settings[Keys.logFormat] == .text || (settings[Keys.logFormat] == .auto && isTerminal)
        return LogWriter(format: isText ? .text(isColoured: isTerminal) : .json)
    }
}

/// Settings that read well and make no sense.
struct ConfigurationError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
