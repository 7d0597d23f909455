/// What a cluster is asked to do: the jobs of its busiest time, and what they are about.
public struct Workload: Hashable, Sendable {
    /// Jobs a second, over all lanes, in the busiest minutes.
    public var rate: Double
    /// Part of the jobs, 0 to 1, whose result is stored already, or is being made for another job.
    public var hitRatio = 0.0
    /// Part of the others, 0 to 1, whose source is kept, so that no origin is asked for its bytes.
    public var keptRatio = 0.0
    /// Seconds in which an origin sends a source, in the mean.
    public var originLatency = 0.2
    /// Bytes of sources, of which each is as frequent as the others. At least one.
    public var sourceSizes: [Double]
    /// Bytes of all results of a job together, in the mean.
    public var resultBytes: Double
    /// Results of a job: 1, or the number of its variants.
    public var outputs = 1
    /// Seconds for which a result is stored.
    public var life = 86_400.0
    /// How many different results there are to be made; nil where each that is made is another one.
    public var distinct: Double?
    /// Bytes of a job's message and of an event's, in the mean.
    public var (jobBytes, eventBytes) = (300.0, 900.0)

    /// Takes what has no usual value; the rest has.
    public init(rate: Double, sourceSizes: [Double], resultBytes: Double) {
        (self.rate, self.sourceSizes, self.resultBytes) = (rate, sourceSizes, resultBytes)
    }

    /// Bytes of a source, in the mean.
    public var sourceBytes: Double { sourceSizes.reduce(0, +) / Double(sourceSizes.count) }

    /// Jobs a second whose results have to be made.
    public var made: Double { rate * (1 - hitRatio) }
    /// Sources a second that origins send.
    public var fetched: Double { made * (1 - keptRatio) }
}
