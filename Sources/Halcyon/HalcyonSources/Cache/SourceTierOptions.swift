import HalcyonModel

/// What the source tier keeps, where, and for how long.
public struct SourceTierOptions: Sendable {
    /// What responses leave open about their freshness.
    public var freshness = FreshnessPolicy()
    /// How long failures are remembered.
    public var failures = FailureLifetimes()
    /// Bytes of the largest source that is kept in Redis; 0 for none.
    public var redisBytes = 1 << 20
    /// Bytes of the largest source that is handed to other workers through Redis when they wait for it; it stays there for half a
    /// minute. 0 for none: then each worker that waits for a larger source than is kept loads it itself.
    public var handOverBytes = 32 << 20
    /// Bytes of all sources in Redis, those of all tenants, with what is known of them; nil for no limit of Halcyon's own.
    public var redisBudget: Int?
    /// For how long Redis keeps what its origin can be asked about, fresh or not, in seconds.
    public var redisRetention = 3600.0
    /// A folder of the local disk to keep sources in; nil for none.
    public var folder: String?
    /// Bytes of all sources there.
    public var folderBytes = 1 << 30
    /// For how long the folder keeps what its origin can be asked about, fresh or not, in seconds. There the bytes are what
    /// is scarce.
    public var folderRetention = 30 * 86_400.0

    /// The defaults.
    public init() {}
}

/// For how many seconds a failure to load a source is taken for the answer, by its class; 0 for not at all.
public struct FailureLifetimes: Hashable, Sendable {
    /// There is none: 404 and 410.
    public var missing = 60.0
    /// It is not given, or cannot be taken: 401, 403, 451, other statuses of the 400s, too large, too many redirects.
    public var refused = 60.0
    /// The origin is in trouble: statuses of the 500s, 408, 425, 429, broken answers.
    public var failing = 1.0
    /// There is no way to it: name, connection, TLS, time.
    public var unreachable = 1.0

    /// The defaults.
    public init() {}

    /// How long this one holds.
    public func seconds(for failure: Failure) -> Double {
        switch failure.code {
        case .notFound, .gone: missing
        case .forbidden, .tooLarge, .tooManyRedirects: refused
        case .httpError: failure.isRetryable ? failing : refused
        case .dnsError, .connectError, .tlsError, .timeout: unreachable
        case .invalidJob, .unsupportedSource, .blockedAddress, .tooManyPixels, .unsupportedFormat, .corruptImage,
            .expired, .providerError, .poison, .internal, .originUnavailable:
            0
        }
    }
}
