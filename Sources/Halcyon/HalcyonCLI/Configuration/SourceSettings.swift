import Formats
import HalcyonCoding
import HalcyonModel
import HalcyonSources
import ProgramSettings

extension ProgramOptions {
    /// Settings of fetching and caching sources, and of the limits of origins.
    static let sourceSettings: [Setting<ProgramOptions>] = [
        Setting("sources.allow", \.allow, .list(of: .addressRule))
            .help(
                """
                Hosts (img.example.org, *.example.org), addresses and CIDR ranges that are allowed although not \
                public.
                """),
        Setting("sources.deny", \.deny, .list(of: .addressRule))
            .help("Hosts, addresses and CIDR ranges that are never connected to."),
        Setting("sources.fileRoots", \.worker.sources.fileRoots, .list(of: .absolutePath))
            .help("Folders for file: sources; paths and links cannot lead out of them. None by default."),
        Setting("sources.maximumBytes", \.worker.sources.maximumBytes, .byteSize(in: 1...(1 << 30)))
            .help("Maximum size of a source."),
        Setting("sources.connectTimeout", \.worker.sources.connectTimeout, .duration())
            .help("Timeout for DNS, connection and TLS handshake of a request."),
        Setting("sources.timeout", \.worker.sources.timeout, .duration())
            .help("Timeout for the whole transfer of a source."),
        Setting("sources.stallTimeout", \.worker.sources.stallTimeout, .duration())
            .help("Time after which a transfer below 64 bytes per second is aborted."),
        Setting("sources.maximumRedirects", \.worker.sources.maximumRedirects, .integer(in: 0...20))
            .help("Maximum number of redirects."),
        Setting("sources.maximumResumes", \.worker.sources.resumptions, .integer(in: 0...100))
            .help("Maximum number of range requests that resume an interrupted transfer."),
        Setting("sources.assetCacheBytes", \.worker.sources.sharedBytes, .byteSize(in: 0...(1 << 40)))
            .help("Memory for cached watermarks and overlays; 0 disables the cache."),

        Setting("sources.identity", \.worker.reader.identityRules, .list(of: .identityRule))
            .help(
                """
                Query parameters that do not identify an image, per host: HOST?NAME&NAME, such as \
                *.s3.amazonaws.com?X-Amz-*. URLs that differ in them share fetch, cache and result. The first rule for \
                a host counts. Set it for workers, gateways and commands alike.
                """),

        Setting("sources.fallback", \.worker.reader.fallback, .optional(.source))
            .help(
                """
                Source of the fallback picture of jobs that have none of their own: a URL, a file: in \
                sources.fileRoots, or initials:. None by default.
                """),

        // Videos.
        Setting("sources.video.timeout", \.worker.sources.video.time, .duration(in: .seconds(1) ... .seconds(600)))
            .help("Timeout for extracting one video frame."),
        Setting("sources.video.memory", \.worker.sources.video.memory, .byteSize(in: (64 << 20)...(1 << 40)))
            .help("Memory limit of one ffmpeg process. As many run at once as images are rendered."),
        Setting("sources.video.maximumBytes", \.worker.sources.video.maximumBytes, .byteSize(in: 1...(1 << 32)))
            .help("Maximum bytes that are loaded of a video. They stay in memory until its frames are extracted."),

        // The source cache.
        Setting("sources.redisBytes", \.worker.sourceTier.redisBytes, .byteSize(in: 0...(512 << 20)))
            .help("Maximum size of a source cached in Redis for all workers; 0 caches none there."),
        Setting("sources.handOverBytes", \.worker.sourceTier.handOverBytes, .byteSize(in: 0...(512 << 20)))
            .help("Maximum size of a source passed through Redis to workers that wait for it."),
        Setting("sources.redisBudget", \.worker.sourceTier.redisBudget, .sourceBudget)
            .help(
                """
                Quota in bytes of all sources in Redis, with LRU eviction. auto: a quarter of maxmemory of Redis, or \
                256 MiB without maxmemory. 0 for no limit except that of Redis.
                """),
        Setting("sources.redisRetention", \.worker.sourceTier.redisRetention, .seconds(in: .zero ... .days(36_525)))
            .help("Retention in Redis of sources that can be revalidated, fresh or not."),
        Setting("sources.diskCache", \.worker.sourceTier.folder, .optional(.absolutePath))
            .help("Folder of the disk cache for sources. Each worker uses a separate subfolder. None by default."),
        Setting("sources.diskCacheBytes", \.worker.sourceTier.folderBytes, .byteSize(in: 1...(1 << 50)))
            .help("Maximum size of the disk cache of one worker, with LRU eviction."),
        Setting(
            "sources.diskCacheRetention", \.worker.sourceTier.folderRetention, .seconds(in: .zero ... .days(36_525))
        )
        .help("Retention on disk of sources that can be revalidated, fresh or not."),
        Setting("sources.archive.minimumPixels", \.worker.archive.minimumPixels, .integer(in: 0...1_000_000_000))
            .help(
                """
                Sources with more pixels are reduced once to an archive copy, from which all results that fit into it \
                are rendered. 0 for no copies. All workers need the same value.
                """),
        Setting("sources.archive.pixels", \.worker.archive.pixels, .integer(in: 10_000...100_000_000))
            .help("Maximum number of pixels of an archive copy. All workers need the same value."),
        Setting("sources.archive.redisBytes", \.worker.sourceTier.copyBytes, .byteSize(in: 0...(512 << 20)))
            .help(
                "Maximum size of an archive copy in Redis; 0 stores none there. Part of sources.redisBudget."),
        Setting("sources.archive.retention", \.worker.sourceTier.copyRetention, .seconds(in: .zero ... .days(36_525)))
            .help("Retention in Redis of archive copies, fresh or not."),
        Setting("sources.heuristicFraction", \.worker.sourceTier.freshness.heuristicFraction, .number(in: 0...1))
            .help(
                """
                Heuristic freshness of sources with only a modification date, as a fraction of their age; 0 for \
                none.
                """),
        Setting(
            "sources.staleWhileRevalidate", \.worker.sourceTier.freshness.staleWhileRevalidate,
            .seconds(in: .zero ... .days(365))
        )
        .help("Default time for which a stale source is used while it is revalidated, unless its origin sets one."),
        Setting("sources.staleIfError", \.worker.sourceTier.freshness.staleIfError, .seconds(in: .zero ... .days(365)))
            .help("Default time for which a stale source is used if its origin fails, unless the origin sets one."),
        Setting("sources.negativeTTL.notFound", \.worker.sourceTier.failures.missing, .seconds(in: .zero ... .days(1)))
            .help("Negative-cache TTL for 404 and 410; 0 to disable."),
        Setting(
            "sources.negativeTTL.clientError", \.worker.sourceTier.failures.refused, .seconds(in: .zero ... .days(1))
        )
        .help("Negative-cache TTL for other 4xx statuses, too large sources and too many redirects; 0 to disable."),
        Setting(
            "sources.negativeTTL.serverError", \.worker.sourceTier.failures.failing, .seconds(in: .zero ... .days(1))
        )
        .help("Negative-cache TTL for 408, 425, 429 and 5xx statuses and malformed responses; 0 to disable."),
        Setting(
            "sources.negativeTTL.unreachable", \.worker.sourceTier.failures.unreachable,
            .seconds(in: .zero ... .days(1))
        )
        .help("Negative-cache TTL for DNS, connection, TLS and timeout errors; 0 to disable."),

        // Origins.
        Setting("sources.origin.concurrency", \.worker.origins.concurrency, .integer(in: 1...10_000))
            .help("Maximum number of loads in flight from one origin (scheme, host and port), over all workers."),
        Setting("sources.origin.rate", \.worker.origins.rate, .number(in: 0...1_000_000))
            .help("Maximum number of loads per second from one origin, over all workers; 0 for no limit."),
        Setting("sources.origin.burst", \.worker.origins.burst, .integer(in: 1...1_000_000))
            .help("Number of loads that may start at once after an idle time, if sources.origin.rate is set."),
        Setting("sources.origin.breakerFailures", \.worker.origins.failures, .integer(in: 0...1_000_000))
            .help("Failures that open an origin's circuit breaker if they are half of its last loads; 0 for never."),
        Setting("sources.origin.breakerURLs", \.worker.origins.failingURLs, .integer(in: 1...1_000_000))
            .help("Minimum number of different URLs among these failures."),
        Setting("sources.origin.breakerWindow", \.worker.origins.window, .duration(in: .milliseconds(1) ... .days(1)))
            .help("Age at which a load no longer counts for the circuit breaker."),
        Setting("sources.origin.breakerCooldown", \.worker.origins.rest, .duration(in: .milliseconds(1) ... .days(1)))
            .help("Time for which the circuit breaker stays open; it doubles with each failed probe."),
        Setting(
            "sources.origin.breakerMaximumCooldown", \.worker.origins.maximumCooldown,
            .duration(in: .milliseconds(1) ... .days(1))
        )
        .help("Maximum time for which the circuit breaker stays open."),
    ]
}

extension ValueKind<AddressRule> {
    /// A value kind for an address, a range or a host.
    static var addressRule: Self { ValueKind(AddressRule.expectation) { AddressRule($0) } }
}

extension ValueKind<SourceIdentityRule> {
    /// A value kind for a rule about the identity of sources.
    fileprivate static var identityRule: Self {
        ValueKind(SourceIdentityRule.expectation) { SourceIdentityRule($0) }
    }
}

extension ValueKind<Source> {
    /// A value kind for a source in one line.
    fileprivate static var source: Self {
        ValueKind("a source such as https://img.example.org/none.png or file:///srv/none.png") { text in
            try? JobDecoder().source(text)
        } write: {
            $0.text
        }
    }
}

extension ValueKind<SourceBudget> {
    /// A value kind for the quota of sources.
    fileprivate static var sourceBudget: Self {
        let size = ValueKind<Int>.byteSize(in: 0...(1 << 50))
        return ValueKind("auto, or \(size.expectation)") { text in
            if text == "auto" { return .automatic }
            return size.value(of: text).map { $0 == 0 ? .unlimited : .bytes($0) }
        } write: { budget in
            switch budget {
            case .automatic: "auto"
            case .bytes(let bytes): size.text(of: bytes)
            case .unlimited: "0"
            }
        }
    }
}
