import Glibc

/// What becomes of jobs in a worker's line, job for job: they come at random moments, wait for their source, then for one of the processors, then
/// are rendered. What hits takes what it costs.
///
/// Arrivals are Poisson's; the times of origins and of renderings are lognormal, the former with the greater spread, as pictures and
/// networks are. The numbers are always the same for the same workload.
public struct LineSimulation: Sendable {
    /// Seconds from a job's coming to its end.
    public struct Times: Hashable, Sendable {
        /// Over all jobs, hits among them.
        public let mean: Double
        /// Of the jobs whose results are made: half, and 99 of 100, take no longer.
        public let (half, most): (Double, Double)
    }

    private let arrivals: Double
    private let workload: Workload
    private let costs: Costs
    private let processors: Int
    /// Jobs that are looked at; the first tenth only fills the line.
    private static let count = 40_000
    /// The standard deviation of the logarithm: a tenth of the origins takes more than twice as long as the one in the middle, and a
    /// tenth of the renderings half as long again.
    private static let (originSpread, renderingSpread) = (0.6, 0.3)

    /// - Parameters:
    ///   - processors: of each worker.
    ///   - workers: that share the jobs evenly.
    public init(_ workload: Workload, _ costs: Costs, processors: Int, workers: Int) {
        (self.workload, self.costs, self.processors) = (workload, costs, processors)
        arrivals = workload.rate / Double(workers)
    }

    /// Runs it.
    public func run() -> Times {
        var numbers = Numbers(state: 1)
        var now = 0.0
        // Of the jobs to be made: when they came, and when their source is there.
        var waiting: [(came: Double, isThere: Double)] = []
        var hits = 0
        for _ in 0..<Self.count {
            now -= log(numbers.next()) / arrivals
            if numbers.next() < workload.hitRatio {
                hits += 1
                continue
            }
            let isKept = numbers.next() < workload.keptRatio
            let fetch =
                isKept ? 0 : numbers.lognormal(mean: workload.originLatency, spread: Self.originSpread)
            waiting.append((now, now + fetch))
        }
        waiting.sort { $0.isThere < $1.isThere }
        let service = costs.rendering + costs.miss + costs.megabyte * workload.sourceBytes / 1e6
        var free = [Double](repeating: 0, count: processors)
        var times: [Double] = []
        for (number, job) in waiting.enumerated() {
            let next = free.indices.min { free[$0] < free[$1] } ?? 0
            let end =
                max(free[next], job.isThere) + numbers.lognormal(mean: service, spread: Self.renderingSpread)
            free[next] = end
            if number >= waiting.count / 10 { times.append(end - job.came) }
        }
        times.sort()
        func percentile(_ part: Double) -> Double {
            times.isEmpty ? costs.hit : times[min(times.count - 1, Int(Double(times.count) * part))]
        }
        let made = times.isEmpty ? 0 : times.reduce(0, +) / Double(times.count)
        let part = Double(waiting.count) / Double(waiting.count + hits)
        return Times(
            mean: part * made + (1 - part) * costs.hit, half: percentile(0.5), most: percentile(0.99))
    }
}

/// Numbers at random that are the same each time: SplitMix64 (G. L. Steele, D. Lea, C. H. Flood, "Fast Splittable Pseudorandom Number
/// Generators", 2014).
private struct Numbers {
    var state: UInt64

    /// More than 0, at most 1.
    mutating func next() -> Double {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        mixed ^= mixed >> 31
        return (Double(mixed >> 11) + 1) / 9_007_199_254_740_992
    }

    /// - Parameter spread: the standard deviation of the logarithm.
    mutating func lognormal(mean: Double, spread: Double) -> Double {
        // Box and Muller, 1958.
        let normal = (-2 * log(next())).squareRoot() * cos(2 * .pi * next())
        return mean * exp(spread * normal - spread * spread / 2)
    }
}
