/// The costs of jobs on one machine, in seconds of one processor and bytes of memory.
public struct Costs: Hashable, Sendable {
    /// The time to render a job's source into all its results.
    public var rendering: Double
    /// The peak pixel memory of a rendering in bytes.
    public var renderingBytes: Double
    /// The remaining time that a worker spends on a job, for a cache hit and for a miss.
    public var (hit, miss): (Double, Double)
    /// The additional time of a worker per megabyte of the source.
    public var megabyte: Double
    /// The additional time of a worker per result that is read from the result store, and per result that is looked up
    /// there and written behind.
    public var (storeHit, storeWrite): (Double, Double)
    /// The time of a gateway per event, even without subscribers; the time to wake up for a batch of events; and the
    /// maximum time per second for waking up, regardless of the event rate.
    public var (following, waking, mostWaking): (Double, Double, Double)
    /// The time of Redis for a cache hit and for a miss, and the additional time of a miss per megabyte of the source.
    public var (redisHit, redisMiss, redisMegabyte): (Double, Double, Double)
    /// The memory of an idle worker in bytes.
    public var workerBytes = 120e6
    /// The memory overhead of a result or a source in Redis, in bytes (docs/deployment.md).
    public var redisEntryBytes = 900.0
    /// The size of the record of a result in the result store, in bytes.
    public var storeEntryBytes = 1000.0

    /// Creates costs from a rendering on this machine and from reference measurements (docs/capacity.md), which are
    /// scaled by the speed of this machine.
    /// - Parameters:
    ///   - unit: the seconds that this machine needs for the work of ``Reference/unit``.
    ///   - rendering: the time of a rendering in seconds, measured on this machine.
    ///   - renderingBytes: the memory of a rendering in bytes, measured on this machine.
    public init(unit: Double, rendering: Double, renderingBytes: Double) {
        let pace = unit / Reference.unit
        (self.rendering, self.renderingBytes) = (rendering, renderingBytes)
        (hit, miss, megabyte) = (Reference.hit * pace, Reference.miss * pace, Reference.megabyte * pace)
        (storeHit, storeWrite) = (Reference.storeHit * pace, Reference.storeWrite * pace)
        (following, waking) = (Reference.following * pace, Reference.waking * pace)
        mostWaking = Reference.mostWaking * pace
        (redisHit, redisMiss) = (Reference.redisHit * pace, Reference.redisMiss * pace)
        redisMegabyte = Reference.redisMegabyte * pace
    }

    /// The mean processor time of a worker per job, in seconds.
    public func worker(_ workload: Workload) -> Double {
        let made = rendering + miss + megabyte * workload.sourceBytes / 1e6
        return workload.hitRatio * hit + (1 - workload.hitRatio) * made + store(workload) / workload.rate
    }

    /// The mean number of processors that all workers use for the result store; 0 without one.
    public func store(_ workload: Workload) -> Double {
        guard workload.storeRatio != nil else { return 0 }
        return (workload.restored * storeHit + workload.made * storeWrite) * Double(workload.outputs)
    }

    /// The mean number of processors that a gateway uses at a rate of events per second.
    public func gateway(events: Double) -> Double { events * following + min(events * waking, mostWaking) }

    /// The mean processor time of Redis per job, in seconds.
    public func redis(_ workload: Workload) -> Double {
        // A result that is put back takes a lease and a script as a rendered one does.
        let restored = workload.hitRatio * (workload.storeRatio ?? 0)
        return (workload.hitRatio - restored) * redisHit + restored * redisMiss
            + (1 - workload.hitRatio) * (redisMiss + redisMegabyte * workload.sourceBytes / 1e6)
    }
}

/// Reference measurements by `PlanBenchmark` and `StoreBenchmark` in seconds of CPU time (docs/capacity.md).
public enum Reference {
    /// The time to decode a job and derive its key. Any machine can repeat this measurement quickly.
    public static let unit = 4.25e-6
    static let (hit, miss, megabyte) = (27e-6, 1e-3, 3.1e-3)
    /// With a bucket. A folder costs less.
    static let (storeHit, storeWrite) = (300e-6, 900e-6)
    static let (following, waking, mostWaking) = (10e-6, 500e-6, 0.12)
    static let (redisHit, redisMiss, redisMegabyte) = (3e-6, 375e-6, 1.1e-3)
}
