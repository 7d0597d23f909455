import HalcyonModel
import HalcyonSources
import Settings

// Where sources are kept, for how long, and how their origins are spared.
extension Keys {
    // MARK: Kept sources

    static let redisBytes = SettingKey(
        "sources.redisBytes", .byteSize(in: 0...(512 << 20)), default: tier.redisBytes,
        help: "The largest source that is kept in Redis, for all workers; 0 keeps none there.")
    static let handOverBytes = SettingKey(
        "sources.handOverBytes", .byteSize(in: 0...(512 << 20)), default: tier.handOverBytes,
        help: "The largest source that a worker hands to others through Redis while they wait for it.")
    static let redisBudget = SettingKey(
        "sources.redisBudget", .byteSize(in: 0...(1 << 50)), default: tier.redisBudget ?? 0,
        help: "Bytes of all sources in Redis; what was not used for longest goes first. 0 for no limit but Redis' own.")
    static let redisRetention = SettingKey(
        "sources.redisRetention", .duration(in: .zero ... .seconds(3_155_760_000)),
        default: .seconds(tier.redisRetention),
        help: "For how long Redis keeps a source, fresh or not, whose origin can be asked whether it has changed.")
    static let folder = SettingKey(
        "sources.folder", .optional(.absolutePath), default: tier.folder,
        help: "A folder of the local disk to keep sources in; each worker takes a folder of its own in it.")
    static let folderBytes = SettingKey(
        "sources.folderBytes", .byteSize(in: 1...(1 << 50)), default: tier.folderBytes,
        help: "Bytes of the sources there, of each worker; what was not used for longest goes first.")
    static let folderRetention = SettingKey(
        "sources.folderRetention", .duration(in: .zero ... .seconds(3_155_760_000)),
        default: .seconds(tier.folderRetention),
        help: "For how long it keeps a source, fresh or not, whose origin can be asked whether it has changed.")
    static let heuristicFraction = SettingKey(
        "sources.heuristicFraction", .double(in: 0...1), default: tier.freshness.heuristicFraction,
        help: "Part of its age for which a source is fresh that says nothing but when it was changed; 0 for none.")
    static let staleWhileRevalidate = SettingKey(
        "sources.staleWhileRevalidate", .duration(in: .zero ... .seconds(86_400 * 365)),
        default: .seconds(tier.freshness.staleWhileRevalidate),
        help: "For how long a source may be used, once stale, while it is loaded anew, if its origin does not say.")
    static let staleIfError = SettingKey(
        "sources.staleIfError", .duration(in: .zero ... .seconds(86_400 * 365)),
        default: .seconds(tier.freshness.staleIfError),
        help: "For how long a source may be used, once stale, when its origin fails, if that does not say.")
    static let keepMissing = SettingKey(
        "sources.failures.missing", lifetime, default: .seconds(tier.failures.missing),
        help: "For how long a 404 or 410 is remembered; 0 for not at all.")
    static let keepRefused = SettingKey(
        "sources.failures.refused", lifetime, default: .seconds(tier.failures.refused),
        help: "The same for other statuses of the 400s, too large sources and too many redirects.")
    static let keepFailing = SettingKey(
        "sources.failures.failing", lifetime, default: .seconds(tier.failures.failing),
        help: "The same for statuses of the 500s and broken answers.")
    static let keepUnreachable = SettingKey(
        "sources.failures.unreachable", lifetime, default: .seconds(tier.failures.unreachable),
        help: "The same for names, connections and TLS that fail, and for time that ran out.")

    // MARK: Origins

    static let originConcurrency = SettingKey(
        "sources.origin.concurrency", .integer(in: 1...10_000), default: origins.concurrency,
        help: "Loads from one origin (scheme, host and port) under way at once, of all workers together.")
    static let originRate = SettingKey(
        "sources.origin.rate", .double(in: 0...1_000_000), default: origins.rate,
        help: "Loads from one origin a second, of all workers together; 0 for any number.")
    static let originBurst = SettingKey(
        "sources.origin.burst", .integer(in: 1...1_000_000), default: origins.burst,
        help: "How many may come at once after a quiet time, where there is a rate.")
    static let originFailures = SettingKey(
        "sources.origin.failures", .integer(in: 0...1_000_000), default: origins.failures,
        help:
            "Failures that open an origin's circuit breaker when they are half of its last loads; 0 for never.")
    static let originFailingURLs = SettingKey(
        "sources.origin.failingURLs", .integer(in: 1...1_000_000), default: origins.failingURLs,
        help: "Different URLs that must be among these failures.")
    static let originWindow = SettingKey(
        "sources.origin.window", .duration(in: .milliseconds(1) ... .seconds(86_400)), default: origins.window,
        help: "The age at which a load counts no longer for the circuit breaker.")
    static let originRest = SettingKey(
        "sources.origin.rest", .duration(in: .milliseconds(1) ... .seconds(86_400)), default: origins.rest,
        help: "The time for which the breaker stays open; it doubles with each failure of the probe.")
    static let originLongestRest = SettingKey(
        "sources.origin.longestRest", .duration(in: .milliseconds(1) ... .seconds(86_400)),
        default: origins.longestRest, help: "The longest of these times.")

    /// All of these, in the order in which they are listed.
    static let sourceTier: [any AnySettingKey] = [
        redisBytes, handOverBytes, redisBudget, redisRetention, folder, folderBytes, folderRetention, heuristicFraction,
        staleWhileRevalidate,
        staleIfError, keepMissing, keepRefused, keepFailing, keepUnreachable, originConcurrency, originRate,
        originBurst,
        originFailures, originFailingURLs, originWindow, originRest, originLongestRest,
    ]

    private static let tier = SourceTierOptions()
    private static let origins = OriginLimits()
    private static let lifetime = SettingKind<Duration>.duration(in: .zero ... .seconds(86_400))
}

extension Configuration {
    var sourceTier: SourceTierOptions {
        var options = SourceTierOptions()
        options.redisBytes = settings[Keys.redisBytes]
        options.handOverBytes = settings[Keys.handOverBytes]
        options.redisBudget = settings[Keys.redisBudget] > 0 ? settings[Keys.redisBudget] : nil
        options.redisRetention = settings[Keys.redisRetention] / .seconds(1)
        options.folder = settings[Keys.folder]
        options.folderBytes = settings[Keys.folderBytes]
        options.folderRetention = settings[Keys.folderRetention] / .seconds(1)
        options.freshness.heuristicFraction = settings[Keys.heuristicFraction]
        options.freshness.staleWhileRevalidate = settings[Keys.staleWhileRevalidate] / .seconds(1)
        options.freshness.staleIfError = settings[Keys.staleIfError] / .seconds(1)
        options.failures.missing = settings[Keys.keepMissing] / .seconds(1)
        options.failures.refused = settings[Keys.keepRefused] / .seconds(1)
        options.failures.failing = settings[Keys.keepFailing] / .seconds(1)
        options.failures.unreachable = settings[Keys.keepUnreachable] / .seconds(1)
        return options
    }

    var origins: OriginLimits {
        var limits = OriginLimits()
        limits.concurrency = settings[Keys.originConcurrency]
        limits.rate = settings[Keys.originRate]
        limits.burst = settings[Keys.originBurst]
        limits.failures = settings[Keys.originFailures]
        limits.failingURLs = settings[Keys.originFailingURLs]
        limits.window = settings[Keys.originWindow]
        limits.rest = settings[Keys.originRest]
        limits.longestRest = settings[Keys.originLongestRest]
        limits.lease = settings[Keys.leaseDuration]
        return limits
    }
}
