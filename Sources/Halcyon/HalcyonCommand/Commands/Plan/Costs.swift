/// What jobs cost on one machine: seconds of one processor, and bytes of memory.
public struct Costs: Hashable, Sendable {
    /// Rendering a job's source into all its results.
    public var rendering: Double
    /// Pixels that a rendering holds at its height, in bytes.
    public var renderingBytes: Double
    /// All that a worker does about a job besides, when its result is stored, and when it is not.
    public var (hit, miss): (Double, Double)
    /// What each megabyte of a source costs a worker besides.
    public var megabyte: Double
    /// What an event costs each gateway that follows it, though nobody asks it; waking up for one, which many that come together share;
    /// and at most for that in a second, however many come.
    public var (following, waking, mostWaking): (Double, Double, Double)
    /// What a job costs Redis, when its result is stored, and when it is not, and then for each megabyte of the source.
    public var (redisHit, redisMiss, redisMegabyte): (Double, Double, Double)
    /// What a worker takes before it does anything, in bytes.
    public var workerBytes = 120e6
    /// What Redis has for a result besides its bytes, and for a source, in bytes (docs/deployment.md).
    public var redisEntryBytes = 900.0

    /// The costs of a job around its rendering, as they were measured beside ``Reference/unit`` (docs/capacity.md).
    /// - Parameters:
    ///   - unit: seconds of this machine for what took ``Reference/unit`` where they were measured: a slower machine takes more for all.
    ///   - rendering: seconds, measured here.
    ///   - renderingBytes: bytes, measured here.
    public init(unit: Double, rendering: Double, renderingBytes: Double) {
        let pace = unit / Reference.unit
        (self.rendering, self.renderingBytes) = (rendering, renderingBytes)
        (hit, miss, megabyte) = (Reference.hit * pace, Reference.miss * pace, Reference.megabyte * pace)
        (following, waking) = (Reference.following * pace, Reference.waking * pace)
        mostWaking = Reference.mostWaking * pace
        (redisHit, redisMiss) = (Reference.redisHit * pace, Reference.redisMiss * pace)
        redisMegabyte = Reference.redisMegabyte * pace
    }

    /// Seconds of a worker's processors for a job of this kind, in the mean.
    public func worker(_ workload: Workload) -> Double {
        let made = rendering + miss + megabyte * workload.sourceBytes / 1e6
        return workload.hitRatio * hit + (1 - workload.hitRatio) * made
    }

    /// Processors that each gateway takes for so many events a second.
    public func gateway(events: Double) -> Double { events * following + min(events * waking, mostWaking) }

    /// Seconds of Redis' processors for a job of this kind, in the mean.
    public func redis(_ workload: Workload) -> Double {
        workload.hitRatio * redisHit
            + (1 - workload.hitRatio) * (redisMiss + redisMegabyte * workload.sourceBytes / 1e6)
    }
}

/// What was measured with `PlanBenchmark` (docs/capacity.md): seconds of CPU.
public enum Reference {
    /// Reading a job and making its key, which any machine can repeat in a moment.
    public static let unit = 4.25e-6
    static let (hit, miss, megabyte) = (35e-6, 1e-3, 3.1e-3)
    static let (following, waking, mostWaking) = (10e-6, 500e-6, 0.12)
    static let (redisHit, redisMiss, redisMegabyte) = (3e-6, 375e-6, 1.1e-3)
}
