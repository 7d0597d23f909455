/// The workload of a cluster at peak load.
public struct Workload: Hashable, Sendable {
    /// Jobs per second over all lanes at peak load.
    public var rate: Double
    /// The fraction of jobs (0 to 1) whose result is already stored, or shared with a concurrent job.
    public var hitRatio = 0.0
    /// The fraction of these results (0 to 1) that Redis has evicted and the result store has; nil if there is no store.
    public var storeRatio: Double?
    /// The mean time in seconds to read a result from the result store.
    public var storeLatency = 0.02
    /// The fraction of the other jobs (0 to 1) whose source is cached, so that no origin sends its bytes.
    public var keptRatio = 0.0
    /// The mean time in seconds for an origin to send a source.
    public var originLatency = 0.2
    /// Sizes of equally frequent sources in bytes. There is at least one.
    public var sourceSizes: [Double]
    /// The mean total size of the results of a job in bytes.
    public var resultBytes: Double
    /// The number of results of a job: 1, or the number of its variants.
    public var outputs = 1
    /// The TTL of a result in seconds.
    public var life = 86_400.0
    /// The number of distinct results, or nil if every rendered result is distinct.
    public var distinct: Double?
    /// The mean sizes of a job message and of an event in bytes.
    public var (jobBytes, eventBytes) = (300.0, 900.0)

    /// Creates a workload from the values that have no default.
    public init(rate: Double, sourceSizes: [Double], resultBytes: Double) {
        (self.rate, self.sourceSizes, self.resultBytes) = (rate, sourceSizes, resultBytes)
    }

    /// The mean size of a source in bytes.
    public var sourceBytes: Double { sourceSizes.reduce(0, +) / Double(sourceSizes.count) }

    /// Jobs per second whose results must be rendered.
    public var made: Double { rate * (1 - hitRatio) }
    /// Jobs per second whose results are read from the result store.
    public var restored: Double { rate * hitRatio * (storeRatio ?? 0) }
    /// Sources per second that origins send.
    public var fetched: Double { made * (1 - keptRatio) }
}
