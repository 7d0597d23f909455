/// How an origin is spared, by all workers together.
public struct OriginLimits: Hashable, Sendable {
    /// Loads that may be under way at once.
    public var concurrency = 16
    /// Loads a second, in the mean; 0 for any number.
    public var rate = 0.0
    /// Loads that may come at once after a quiet time, where there is a rate.
    public var burst = 16
    /// Failures that open an origin's circuit breaker when they are at least half of its last loads, of which it looks at
    /// twice as many; 0 for never.
    public var failures = 8
    /// The URLs that these failures must be of at least, so that the retries of one bad URL leave the others alone. No more than
    /// ``failures`` count.
    public var failingURLs = 3
    /// The age at which a load counts no longer.
    public var window = Duration.seconds(60)
    /// The time for which the breaker stays open; it doubles with each failure of the probe that is let through then.
    public var rest = Duration.seconds(5)
    /// The longest of these times.
    public var longestRest = Duration.seconds(120)
    /// When a load counts as over of which nothing was heard: its worker died. One that goes on is heard of three times in this time.
    public var lease = Duration.seconds(10)

    /// The defaults.
    public init() {}
}

/// What an origin's book says to a load.
enum OriginAnswer: Hashable, Sendable {
    /// Begin.
    case go
    /// Ask again, after this time or when another load has ended.
    case wait(Duration)
    /// The origin is left alone, for this time.
    case resting(Duration)
}

/// How a load went, as far as the origin is concerned.
enum OriginOutcome: String, CaseIterable, Hashable, Sendable {
    /// It answered, be it with a 404.
    case answered
    /// It did not answer, or with a trouble of its own.
    case failed
    /// Nobody knows: the load was given up.
    case unknown
}

/// Who counts the loads of origins.
protocol OriginBook: Sendable {
    /// A load wants to begin.
    /// - Parameter load: a name of its own.
    func enter(_ origin: Origin, load: String) async throws -> OriginAnswer
    /// A load that began has ended.
    /// - Parameter url: an identifier of what was loaded.
    func leave(_ origin: Origin, load: String, of url: String, _ outcome: OriginOutcome) async throws
    /// These loads, by their origins, go on. One that counts as over already stays so.
    func prolong(_ loads: [Origin: Set<String>]) async throws
}
