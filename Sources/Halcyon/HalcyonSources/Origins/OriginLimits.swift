/// How an origin is spared, by all workers together.
public struct OriginLimits: Hashable, Sendable {
    /// Loads that may be under way at once.
    public var concurrency = 16
    /// Loads a second, in the mean; 0 for any number.
    public var rate = 0.0
    /// Loads that may come at once after a quiet time, where there is a rate.
    public var burst = 16
    /// Failures in a row after which an origin is left alone for a while; 0 for never.
    public var failures = 8
    /// For how long; it doubles with each failure of the single load that is tried then.
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
    func leave(_ origin: Origin, load: String, _ outcome: OriginOutcome) async throws
    /// These loads, by their origins, go on. One that counts as over already stays so.
    func prolong(_ loads: [Origin: Set<String>]) async throws
}
