import Formats
import HalcyonGateway
import HalcyonModel
import ProgramSettings

extension ProgramOptions {
    /// Settings of the gateway.
    static let gatewaySettings: [Setting<ProgramOptions>] = [
        Setting("gateway.listen", \.gatewayListen, .list(of: .hostPort))
            .help(
                """
                Addresses (0.0.0.0:8080) that `halcyon gateway` listens on. If one is in use, `halcyon dev` chooses \
                a free port.
                """),
        Setting("gateway.allowAnonymous", \.gateway.access.isOpen, .bool)
            .help(
                """
                Allow a gateway without keys to listen on addresses that other machines can reach. Every client then \
                has full access, except web pages of origins that gateway.corsOrigins does not name.
                """),
        Setting("gateway.requiresExpiry", \.gateway.access.requiresExpiry, .bool)
            .help("Require an expiry time in signed URLs."),
        Setting("gateway.corsOrigins", \.gateway.access.origins, .list(of: .text))
            .help(
                """
                Origins (https://example.org) whose pages may read responses (CORS), and submit jobs if no keys are \
                required; * for all. None by default.
                """),
        Setting("gateway.rate", \.gateway.access.limits.rate, .whole(in: 1...1_000_000))
            .help("Sustained number of requests per second of one caller: a key, or an address without a key."),
        Setting("gateway.burst", \.gateway.access.limits.burst, .whole(in: 1...1_000_000))
            .help("Number of requests that a caller may send at once before the rate applies."),
        Setting("gateway.concurrency", \.gateway.access.limits.concurrency, .integer(in: 1...100_000))
            .help("Maximum number of requests in flight per caller."),
        Setting("gateway.clientStreams", \.gateway.access.limits.streams, .integer(in: 1...100_000))
            .help("Maximum number of event streams per caller."),
        Setting("gateway.maximumClients", \.gateway.access.limits.mostCallers, .integer(in: 1...10_000_000))
            .help("Maximum number of callers that are tracked; further callers share one limit."),
        Setting("gateway.connections", \.gateway.limits.connections, .integer(in: 1...100_000))
            .help("Maximum number of connections, including event streams."),
        Setting("gateway.connectionsPerAddress", \.gateway.limits.connectionsPerAddress, .integer(in: 0...100_000))
            .help(
                """
                Maximum number of connections from one address; 0 for no limit besides gateway.connections. Behind a \
                proxy, all connections come from its address.
                """),
        Setting("gateway.bodyBytes", \.gateway.limits.bodyBytes, .byteSize(in: 1024...(1 << 30)))
            .help("Maximum size of a request body, such as a batch of jobs."),
        Setting("gateway.maximumBatchJobs", \.gateway.jobs.linesAtOnce, .integer(in: 1...1_000_000))
            .help("Maximum number of jobs in one request, of /v1/jobs or /v1/batches."),
        Setting("gateway.jobRetention", \.gateway.jobs.memory, .seconds(in: .seconds(1) ... .days(30)))
            .help("Time after its last event for which /v1/jobs/ID knows a job submitted with POST /v1/jobs."),
        Setting("gateway.sendTimeout", \.gateway.jobs.sendTime, .duration(in: .milliseconds(100) ... .seconds(50)))
            .help("Timeout for publishing a job to Kafka. After it the response is 503, and the job is not sent."),
        Setting("gateway.maximumWait", \.gateway.render.wait, .duration(in: .milliseconds(100) ... .seconds(50)))
            .help("Maximum time that /v1/render and /v1/jobs/ID?wait= wait."),
        Setting("gateway.redirectsToStore", \.gateway.redirectsToStore, .bool)
            .help(
                """
                Answer requests for results that are in the result store with a redirect (302) to their public URL \
                (results.store.publicURL), so that the store serves the bytes.
                """),
        Setting("gateway.imageCacheTTL", \.gateway.imageCache.time, .duration(in: .zero ... .seconds(60)))
            .help(
                """
                Time for which images are served from memory without asking Redis. They may outlive a missed purge \
                by this time. 0 disables the cache.
                """),
        Setting("gateway.imageCacheBytes", \.gateway.imageCache.bytes, .byteSize(in: 0...(64 << 30)))
            .help("Maximum size of the image cache; images up to 64 KiB count twice because responses are cached too."),
        Setting("gateway.cacheTags", \.gateway.cacheTags.headers, .list(of: .oneOf))
            .help(
                """
                Headers of images with the tags by which CDNs purge them: cache-tag (Cloudflare, CloudFront), \
                surrogate-key (Fastly), xkey (Varnish). None by default.
                """),
        Setting("gateway.cacheTagBytes", \.gateway.cacheTags.maximumBytes, .byteSize(in: 256...(16 << 10)))
            .help("Maximum size of each of these headers; an image with more tags is private, so no CDN caches it."),
        Setting("gateway.formats", \.gateway.render.formats, .list(of: .oneOf))
            .help(
                """
                Formats that format=auto in /v1/render may choose: the first one that the Accept header of the \
                client names, otherwise the format of the source.
                """),
        Setting("gateway.deadLetterPageSize", \.gateway.dead.most, .integer(in: 1...100_000))
            .help("Maximum number of dead letters per request to /v1/dead or per replay."),
        Setting("gateway.deadLetterPageBytes", \.gateway.dead.pageBytes, .byteSize(in: 1024...(64 << 20)))
            .help("Maximum size of a page of dead letters; the last one may exceed it."),
        Setting("gateway.deadLetterTimeout", \.gateway.dead.time, .duration(in: .milliseconds(100) ... .seconds(50)))
            .help("Maximum time for reading dead letters per request; the response has those found by then."),
        Setting(
            "gateway.overviewInterval", \.gateway.overview.interval,
            .duration(in: .milliseconds(100) ... .seconds(3600))
        )
        .help("Minimum interval between two reads of lanes, workers and dead letters for the overview."),
        Setting(
            "gateway.overviewTimeout", \.gateway.overview.timeout, .duration(in: .milliseconds(100) ... .seconds(10))
        )
        .help("Timeout of each Kafka request for the overview; missing data is omitted."),

        // Event streams.
        Setting("gateway.streams", \.gateway.events.streams, .integer(in: 1...100_000))
            .help("Maximum number of event streams of all callers."),
        Setting("gateway.eventBufferBytes", \.gateway.events.ringBytes, .byteSize(in: 65_536...(1 << 32)))
            .help(
                """
                Memory for recent events. Clients that reconnect within their range are served without Kafka; \
                clients that fall behind it are disconnected.
                """),
        Setting("gateway.eventReplayWindow", \.gateway.events.memory, .duration(in: .zero ... .days(1)))
            .help("Age of the events that are read at startup, for clients of a gateway that has exited."),
        Setting("gateway.historyWindow", \.gateway.events.history.time, .duration(in: .seconds(300) ... .days(1)))
            .help("Age up to which the figures of the dashboard and of /v1/history are kept."),
        Setting("gateway.historyBytes", \.gateway.events.history.bytes, .byteSize(in: 65_536...(1 << 30)))
            .help("Memory for the jobs that can be searched on the dashboard; the oldest are dropped first."),
        Setting("gateway.documentationURL", \.gateway.documentation, .webAddress)
            .help("URL of the documentation, such as your runbook, that the dashboard links to. None by default."),
        Setting("gateway.replayConcurrency", \.gateway.events.replays, .integer(in: 1...1000))
            .help("Maximum number of event streams that replay missed events from Kafka; others wait."),
        Setting(
            "gateway.keepAliveInterval", \.gateway.events.keepAlive,
            .duration(in: .milliseconds(100) ... .seconds(3600))
        )
        .help("Time without events after which a keep-alive comment is sent on a stream."),
        Setting(
            "gateway.slowClientTimeout", \.gateway.events.slowClientTimeout,
            .duration(in: .milliseconds(100) ... .seconds(3600))
        )
        .help("Time after which an event stream is closed if its client does not read."),
        Setting("gateway.reconnectDelay", \.gateway.events.retry, .duration(in: .zero ... .seconds(3600)))
            .help("Delay after which clients reconnect to an event stream that has ended."),
        Setting(
            "gateway.partitionInterval", \.gateway.events.partitionInterval,
            .duration(in: .milliseconds(100) ... .seconds(3600))
        )
        .help("Interval of checks for new partitions of the event topic."),
    ]
}

extension ProgramOptions {
    /// Settings of the URLs of other image servers.
    static let compatibleURLSettings: [Setting<ProgramOptions>] = [
        Setting("gateway.urls.formats", \.gateway.urls.formats, .list(of: .oneOf))
            .help(
                """
                Formats that URLs of imgproxy, thumbor and imagor without a format may get: the first one that the \
                Accept header of the client names. None by default: the format of the source.
                """),
        Setting("gateway.urls.imgproxy.prefix", \.gateway.urls.imgproxy.prefix, .text)
            .help("Path (/ or /imgproxy) below which URLs of imgproxy are served. None by default."),
        Setting("gateway.urls.imgproxy.signatureSize", \.gateway.urls.imgproxy.signatureSize, .integer(in: 1...32))
            .help("Number of bytes of a signature (IMGPROXY_SIGNATURE_SIZE)."),
        Setting("gateway.urls.imgproxy.allowUnsigned", \.gateway.urls.imgproxy.allowsUnsigned, .bool)
            .help("Serve URLs of imgproxy with any signature if there are no keys. Everyone can then render anything."),
        Setting("gateway.urls.imgproxy.onlyPresets", \.gateway.urls.imgproxy.onlyPresets, .bool)
            .help("Accept only presets instead of processing options (IMGPROXY_ONLY_PRESETS)."),
        Setting("gateway.urls.imgproxy.quality", \.gateway.urls.imgproxy.quality, .integer(in: 1...100))
            .help("Quality of images without one (IMGPROXY_QUALITY)."),
        Setting("gateway.urls.imgproxy.formatQuality", \.imgproxyFormatQualities, .list(of: .text))
            .help("Qualities of formats, such as webp=79 (IMGPROXY_FORMAT_QUALITY)."),
        Setting("gateway.urls.imgproxy.baseURL", \.gateway.urls.imgproxy.baseURL, .text)
            .help("URL that sources are appended to (IMGPROXY_BASE_URL). None by default."),
        Setting("gateway.urls.imgproxy.watermark", \.gateway.urls.imgproxy.watermark, .text)
            .help("URL of the watermark (IMGPROXY_WATERMARK_URL). None by default."),
        Setting("gateway.urls.thumbor.prefix", \.gateway.urls.thumbor.prefix, .text)
            .help("Path (/ or /thumbor) below which URLs of thumbor are served. None by default."),
        Setting("gateway.urls.thumbor.allowUnsigned", \.gateway.urls.thumbor.allowsUnsigned, .bool)
            .help(
                "Serve URLs with unsafe instead of a signature (ALLOW_UNSAFE_URL). Everyone can then render anything."),
        Setting("gateway.urls.thumbor.defaultScheme", \.gateway.urls.thumbor.defaultScheme, .oneOf(["http", "https"]))
            .help("Scheme of images without one: http for the http_loader, https for the https_loader."),
        Setting("gateway.urls.thumbor.baseURL", \.gateway.urls.thumbor.baseURL, .text)
            .help("URL that image paths are appended to. None by default: images are URLs."),
        Setting("gateway.urls.thumbor.quality", \.gateway.urls.thumbor.quality, .integer(in: 0...100))
            .help("Quality of images without one (QUALITY); 0 for the default of Halcyon."),
        Setting("gateway.urls.imagor.prefix", \.gateway.urls.imagor.prefix, .text)
            .help("Path (/ or /imagor) below which URLs of imagor are served. None by default."),
        Setting("gateway.urls.imagor.signerType", \.gateway.urls.imagor.algorithm, .oneOf)
            .help("Hash function of signatures (IMAGOR_SIGNER_TYPE)."),
        Setting("gateway.urls.imagor.signerTruncate", \.gateway.urls.imagor.signatureLength, .integer(in: 0...88))
            .help("Number of characters of a signature (IMAGOR_SIGNER_TRUNCATE); 0 for all, otherwise at least 20."),
        Setting("gateway.urls.imagor.allowUnsigned", \.gateway.urls.imagor.allowsUnsigned, .bool)
            .help("Serve URLs with unsafe instead of a signature (IMAGOR_UNSAFE). Everyone can then render anything."),
        Setting("gateway.urls.imagor.defaultScheme", \.gateway.urls.imagor.defaultScheme, .oneOf(["http", "https"]))
            .help("Scheme of images without one (HTTP_LOADER_DEFAULT_SCHEME)."),
        Setting("gateway.urls.imagor.baseURL", \.gateway.urls.imagor.baseURL, .text)
            .help("URL that image paths are appended to (HTTP_LOADER_BASE_URL). None by default: images are URLs."),
        Setting("gateway.urls.imagor.quality", \.gateway.urls.imagor.quality, .integer(in: 0...100))
            .help("Quality of images without one; 0 for the default of Halcyon."),
    ]

    /// Keys and presets of the URLs of other image servers.
    static let compatibleURLMaps: [SettingMap<ProgramOptions>] = [
        SettingMap(
            "gateway.urls.imgproxy.keys", \.imgproxyKeys, variables: "GATEWAY_URLS_IMGPROXY_KEYS_", isSecret: true
        )
        .help(
            "IMGPROXY_KEY and IMGPROXY_SALT by name, as KEY:SALT in hexadecimal digits; several for rotation."),
        SettingMap(
            "gateway.urls.imgproxy.presets", \.gateway.urls.imgproxy.presets,
            variables: "GATEWAY_URLS_IMGPROXY_PRESETS_", isSecret: false
        )
        .help("Processing options by the name of the preset (IMGPROXY_PRESETS); default applies to every URL."),
        SettingMap(
            "gateway.urls.thumbor.keys", \.thumborKeys, variables: "GATEWAY_URLS_THUMBOR_KEYS_", isSecret: true
        )
        .help("Keys of signatures by name (SECURITY_KEY); several for rotation."),
        SettingMap("gateway.urls.imagor.keys", \.imagorKeys, variables: "GATEWAY_URLS_IMAGOR_KEYS_", isSecret: true)
            .help("Keys of signatures by name (IMAGOR_SECRET); several for rotation."),
    ]
}

extension Configuration {
    /// Creates the options of a gateway.
    func gateway() throws -> GatewayOptions {
        var gateway = options.gateway
        gateway.topics = topics
        gateway.kafka = kafka
        gateway.redis = try redis()
        gateway.resultStore = resultStore
        gateway.group = options.worker.group
        gateway.reader = jobReader
        gateway.reader.requiresPreset = options.presetsOnly
        gateway.presets = presets
        gateway.budget = options.worker.results.budget
        gateway.access.keys = try keys
        gateway.access.urlKeys = try urlKeys
        gateway.urls = try CompatibleURLOptions(options)
        gateway.jobs.longestWait = gateway.render.wait
        gateway.batches = options.worker.batches
        return gateway
    }

    private var keys: [APIKey] {
        get throws(ConfigurationError) {
            let (secrets, scopes) = (options.gatewayKeys, options.gatewayScopes)
            for name in scopes.keys.sorted() where secrets[name] == nil {
                throw ConfigurationError("gateway.scopes.\(name): there is no gateway.keys.\(name)")
            }
            var keys: [APIKey] = []
            for (name, secret) in secrets.sorted(by: { $0.key < $1.key }) {
                guard secret.utf8.count >= 16, secret.utf8.allSatisfy({ (0x21...0x7e).contains($0) }) else {
                    throw ConfigurationError(
                        "gateway.keys.\(name): expected 16 or more visible ASCII characters; try `openssl rand -hex 32`"
                    )
                }
                if let other = secrets.first(where: { $0.key != name && $0.value == secret }) {
                    throw ConfigurationError(
                        "gateway.keys.\(name): has the secret of gateway.keys.\(other.key); secrets must be unique"
                    )
                }
                keys.append(APIKey(name: name, secret: secret, scopes: try Self.scopes(of: name, scopes[name])))
            }
            return keys
        }
    }

    private static func scopes(of name: String, _ text: String?) throws(ConfigurationError) -> Set<Scope> {
        guard let text else { return [.submit, .read] }
        var scopes: Set<Scope> = []
        for word in text.split(separator: ",").map({ $0.filter { $0 != " " } }) {
            guard let scope = Scope(rawValue: word) else {
                let words = Scope.allCases.map(\.rawValue).joined(separator: ", ")
                throw ConfigurationError("gateway.scopes.\(name): expected some of \(words), found \(word)")
            }
            scopes.insert(scope)
        }
        guard !scopes.isEmpty else {
            throw ConfigurationError(
                "gateway.scopes.\(name): expected submit, read or admin, found none; remove the key to disable it"
            )
        }
        return scopes
    }

    private var urlKeys: [String: [UInt8]] {
        get throws(ConfigurationError) {
            var keys: [String: [UInt8]] = [:]
            for (id, secret) in options.gatewayURLKeys.sorted(by: { $0.key < $1.key }) {
                guard secret.utf8.count >= 32 else {
                    throw ConfigurationError(
                        "gateway.urlKeys.\(id): expected 32 or more characters; try `openssl rand -hex 32`")
                }
                if let other = keys.first(where: { $0.value == Array(secret.utf8) }) {
                    throw ConfigurationError("gateway.urlKeys.\(id): has the secret of gateway.urlKeys.\(other.key)")
                }
                keys[id] = Array(secret.utf8)
            }
            return keys
        }
    }
}

extension CompatibleURLOptions {
    /// Creates the options from the values of the settings.
    /// - Throws: ``ConfigurationError`` that names the setting.
    init(_ options: ProgramOptions) throws(ConfigurationError) {
        self = options.gateway.urls
        for (name, text) in options.imgproxyKeys.sorted(by: { $0.key < $1.key }) {
            guard let key = ImgproxyURLOptions.Key(text) else {
                throw ConfigurationError(
                    "gateway.urls.imgproxy.keys.\(name): expected KEY:SALT, both in hexadecimal digits")
            }
            imgproxy.keys.append(key)
        }
        thumbor.keys = try Self.keys("thumbor", options.thumborKeys)
        imagor.keys = try Self.keys("imagor", options.imagorKeys)
        imgproxy.formatQualities = [:]
        for text in options.imgproxyFormatQualities {
            let parts = text.split(separator: "=").map { String($0) }
            guard parts.count == 2, let format = ImageFormat(rawValue: parts[0] == "jpg" ? "jpeg" : parts[0]),
                let quality = Int(parts[1]), (1...100).contains(quality)
            else {
                throw ConfigurationError(
                    "gateway.urls.imgproxy.formatQuality: expected formats with qualities, webp=79, found \(text)"
                )
            }
            imgproxy.formatQualities[format] = quality
        }
        guard imagor.signatureLength == 0 || imagor.signatureLength >= 20 else {
            throw ConfigurationError("gateway.urls.imagor.signerTruncate: expected 0 or at least 20 characters")
        }
        if let mistake { throw ConfigurationError("gateway.urls.\(mistake.setting): \(mistake.reason)") }
    }

    private static func keys(
        _ grammar: String, _ texts: [String: String]
    ) throws(ConfigurationError) -> [[UInt8]] {
        var keys: [[UInt8]] = []
        for (name, text) in texts.sorted(by: { $0.key < $1.key }) {
            guard !text.isEmpty else {
                throw ConfigurationError("gateway.urls.\(grammar).keys.\(name): expected a key, found none")
            }
            keys.append(Array(text.utf8))
        }
        return keys
    }
}

extension ValueKind<String> {
    /// An http or https URL, or an empty text. Other schemes are rejected, because the dashboard links to it.
    fileprivate static var webAddress: Self {
        ValueKind("an http or https URL, or an empty text") { text in
            text.isEmpty || ["https://", "http://"].contains { text.hasPrefix($0) } ? text : nil
        }
    }
}
