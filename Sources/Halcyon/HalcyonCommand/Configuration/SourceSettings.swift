import Formats
import HalcyonModel
import HalcyonSources
import ProgramSettings

extension ProgramOptions {
    /// Settings of loading and caching sources, and of their origins' limits.
    static let sourceSettings: [Setting<ProgramOptions>] = [
        Setting("sources.allow", \.allow, .list(of: .addressRule))
            .help(
                "Hosts (img.example.org, *.example.org), addresses and CIDR ranges to load from though they are not public."
            ),
        Setting("sources.deny", \.deny, .list(of: .addressRule))
            .help("Hosts, addresses and CIDR ranges never to load from."),
        Setting("sources.fileRoots", \.worker.sources.fileRoots, .list(of: .absolutePath))
            .help(
                "Folders whose files may be loaded as file: sources; nothing leads out of them. Unless set, none may."),
        Setting("sources.maximumBytes", \.worker.sources.maximumBytes, .byteSize(in: 1...(1 << 30)))
            .help("The largest source."),
        Setting("sources.connectTimeout", \.worker.sources.connectTimeout, .duration())
            .help("Time for a source's name, connection and TLS."),
        Setting("sources.timeout", \.worker.sources.timeout, .duration()).help("Time for a source's whole transfer."),
        Setting("sources.stallTimeout", \.worker.sources.stallTimeout, .duration())
            .help("For how long a source may send fewer than 64 bytes a second."),
        Setting("sources.maximumRedirects", \.worker.sources.maximumRedirects, .integer(in: 0...20))
            .help("Redirects that are followed."),
        Setting("sources.resumptions", \.worker.sources.resumptions, .integer(in: 0...100))
            .help("How often the rest of an answer is asked for that broke off."),
        Setting("sources.sharedBytes", \.worker.sources.sharedBytes, .byteSize(in: 0...(1 << 40)))
            .help("Memory for watermarks and overlays that are still fresh; 0 keeps none."),

        // The S3-compatible store of s3: sources.
        Setting("sources.s3.endpoint", \.s3Endpoint, .text, fallbacks: ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"])
            .help("The URL of the S3-compatible store of s3: sources, which need not be public; Amazon's unless set."),
        Setting(
            "sources.s3.region", \.worker.sources.s3.region, .text, fallbacks: ["AWS_REGION", "AWS_DEFAULT_REGION"]
        )
        .help("The store's region."),
        Setting("sources.s3.accessKey", \.s3AccessKey, .text, fallbacks: ["AWS_ACCESS_KEY_ID"])
            .help("Who signs; unless set, requests are not signed."),
        Setting("sources.s3.secretKey", \.s3SecretKey, .text, isSecret: true, fallbacks: ["AWS_SECRET_ACCESS_KEY"])
            .help("The secret that belongs to it."),
        Setting("sources.s3.sessionToken", \.s3SessionToken, .text, isSecret: true, fallbacks: ["AWS_SESSION_TOKEN"])
            .help("The token of keys that are lent for a while."),
        Setting("sources.s3.style", \.worker.sources.s3.style, .oneOf)
            .help("Whether the bucket stands in the path or the host; auto: in the host at Amazon, else in the path."),

        // Videos.
        Setting("sources.video.time", \.worker.sources.video.time, .duration(in: .seconds(1) ... .seconds(600)))
            .help("Time for finding and decoding one frame of a video."),
        Setting("sources.video.memory", \.worker.sources.video.memory, .byteSize(in: (64 << 20)...(1 << 40)))
            .help("Memory of the ffmpeg that does it; there are as many at once as images are rendered."),
        Setting("sources.video.maximumBytes", \.worker.sources.video.maximumBytes, .byteSize(in: 1...(1 << 32)))
            .help("The largest video; it is in memory while it is loaded and while a frame is looked for."),

        // Kept sources.
        Setting("sources.redisBytes", \.worker.sourceTier.redisBytes, .byteSize(in: 0...(512 << 20)))
            .help("The largest source that is kept in Redis, for all workers; 0 keeps none there."),
        Setting("sources.handOverBytes", \.worker.sourceTier.handOverBytes, .byteSize(in: 0...(512 << 20)))
            .help("The largest source that a worker hands to others through Redis while they wait for it."),
        Setting("sources.redisBudget", \.worker.sourceTier.redisBudget, .zeroAsNil(.byteSize(in: 0...(1 << 50))))
            .help(
                "Bytes of all sources in Redis; what was not used for longest goes first. 0 for no limit but Redis' own."
            ),
        Setting("sources.redisRetention", \.worker.sourceTier.redisRetention, .seconds(in: .zero ... .days(36_525)))
            .help("For how long Redis keeps a source, fresh or not, whose origin can be asked whether it has changed."),
        Setting("sources.folder", \.worker.sourceTier.folder, .optional(.absolutePath))
            .help("A folder of the local disk to keep sources in; each worker takes a folder of its own in it."),
        Setting("sources.folderBytes", \.worker.sourceTier.folderBytes, .byteSize(in: 1...(1 << 50)))
            .help("Bytes of the sources there, of each worker; what was not used for longest goes first."),
        Setting("sources.folderRetention", \.worker.sourceTier.folderRetention, .seconds(in: .zero ... .days(36_525)))
            .help("For how long it keeps a source, fresh or not, whose origin can be asked whether it has changed."),
        Setting("sources.heuristicFraction", \.worker.sourceTier.freshness.heuristicFraction, .number(in: 0...1))
            .help("Part of its age for which a source is fresh that says nothing but when it was changed; 0 for none."),
        Setting(
            "sources.staleWhileRevalidate", \.worker.sourceTier.freshness.staleWhileRevalidate,
            .seconds(in: .zero ... .days(365))
        )
        .help("For how long a source may be used, once stale, while it is loaded anew, if its origin does not say."),
        Setting("sources.staleIfError", \.worker.sourceTier.freshness.staleIfError, .seconds(in: .zero ... .days(365)))
            .help("For how long a source may be used, once stale, when its origin fails, if that does not say."),
        Setting("sources.failures.missing", \.worker.sourceTier.failures.missing, .seconds(in: .zero ... .days(1)))
            .help("For how long a 404 or 410 is remembered; 0 for not at all."),
        Setting("sources.failures.refused", \.worker.sourceTier.failures.refused, .seconds(in: .zero ... .days(1)))
            .help("The same for other statuses of the 400s, too large sources and too many redirects."),
        Setting("sources.failures.failing", \.worker.sourceTier.failures.failing, .seconds(in: .zero ... .days(1)))
            .help("The same for statuses of the 500s and broken answers."),
        Setting(
            "sources.failures.unreachable", \.worker.sourceTier.failures.unreachable,
            .seconds(in: .zero ... .days(1))
        )
        .help("The same for names, connections and TLS that fail, and for time that ran out."),

        // Origins.
        Setting("sources.origin.concurrency", \.worker.origins.concurrency, .integer(in: 1...10_000))
            .help("Loads from one origin (scheme, host and port) under way at once, of all workers together."),
        Setting("sources.origin.rate", \.worker.origins.rate, .number(in: 0...1_000_000))
            .help("Loads from one origin a second, of all workers together; 0 for any number."),
        Setting("sources.origin.burst", \.worker.origins.burst, .integer(in: 1...1_000_000))
            .help("How many may come at once after a quiet time, where there is a rate."),
        Setting("sources.origin.failures", \.worker.origins.failures, .integer(in: 0...1_000_000))
            .help("Failures that open an origin's circuit breaker when they are half of its last loads; 0 for never."),
        Setting("sources.origin.failingURLs", \.worker.origins.failingURLs, .integer(in: 1...1_000_000))
            .help("Different URLs that must be among these failures."),
        Setting("sources.origin.window", \.worker.origins.window, .duration(in: .milliseconds(1) ... .days(1)))
            .help("The age at which a load counts no longer for the circuit breaker."),
        Setting("sources.origin.rest", \.worker.origins.rest, .duration(in: .milliseconds(1) ... .days(1)))
            .help("The time for which the breaker stays open; it doubles with each failure of the probe."),
        Setting(
            "sources.origin.longestRest", \.worker.origins.longestRest,
            .duration(in: .milliseconds(1) ... .days(1))
        )
        .help("The longest of these times."),
    ]
}

extension ValueKind<AddressRule> {
    /// An address, a range or a host.
    static var addressRule: Self { ValueKind(AddressRule.expectation) { AddressRule($0) } }
}

extension S3Options {
    /// - Throws: ``ConfigurationError`` that names the setting.
    init(_ settings: Settings<ProgramOptions>) throws(ConfigurationError) {
        let options = settings.options
        self = options.worker.sources.s3
        let (accessKey, secretKey, token) = (options.s3AccessKey, options.s3SecretKey, options.s3SessionToken)
        guard accessKey.isEmpty == secretKey.isEmpty, !accessKey.isEmpty || token.isEmpty else {
            let given: [(name: String, member: KeyPath<ProgramOptions, String>)] = [
                ("sources.s3.accessKey", \.s3AccessKey), ("sources.s3.secretKey", \.s3SecretKey),
                ("sources.s3.sessionToken", \.s3SessionToken),
            ]
            throw ConfigurationError(
                "sources.s3: accessKey and secretKey belong together, and sessionToken only goes with both; found "
                    + given.filter { !options[keyPath: $0.member].isEmpty }
                    .map { "\($0.name) (\(settings.origin(of: $0.member)))" }.joined(separator: ", "))
        }
        if !accessKey.isEmpty {
            credentials = Credentials(
                accessKey: accessKey, secretKey: secretKey, sessionToken: token.isEmpty ? nil : token)
        }
        if !options.s3Endpoint.isEmpty { endpoint = try Self.endpoint(settings) }
        guard !region.isEmpty, region.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f && !":/@?#".utf8.contains($0) }) else {
            throw ConfigurationError(
                "sources.s3.region: expected a region such as eu-central-1; see \(settings.origin(of: \.worker.sources.s3.region))"
            )
        }
    }

    private static func endpoint(_ settings: Settings<ProgramOptions>) throws(ConfigurationError) -> WebURL {
        let text = settings.options.s3Endpoint
        let origin = settings.origin(of: \.s3Endpoint)
        let url: WebURL
        do throws(Failure) {
            url = try WebURL(text)
        } catch {
            throw ConfigurationError(
                error.code == .unsupportedSource
                    ? "sources.s3.endpoint: expected an http or https URL such as https://store.example:9000; see \(origin)"
                    : "sources.s3.endpoint: \(error.message); see \(origin)")
        }
        guard !text.utf8.contains(where: { "@?#".utf8.contains($0) }) else {
            throw ConfigurationError(
                "sources.s3.endpoint: expected a URL without user, query and fragment; see \(origin)")
        }
        return url
    }
}
