import Glibc

/// A simulation of the queue of a worker. Jobs arrive at random, wait for their source, then for a processor, and are
/// rendered. Cache hits take a constant time.
///
/// Arrivals are a Poisson process. Origin and rendering times are lognormal, as is typical of networks and images, with
/// the greater spread for origins. Results are deterministic for a workload.
public struct QueueSimulation: Sendable {
    /// Latencies in seconds from the arrival to the end of a job.
    public struct Times: Hashable, Sendable {
        /// The mean over all jobs, including cache hits.
        public let mean: Double
        /// The median and the 99th percentile of the jobs that are rendered.
        public let (half, most): (Double, Double)
    }

    private let arrivals: Double
    private let workload: Workload
    private let costs: Costs
    private let processors: Int
    /// The number of simulated jobs. The first tenth only fills the queue.
    private static let count = 40_000
    /// Standard deviations of the logarithm. A tenth of the origin times exceeds twice the median, and a tenth of the
    /// rendering times exceeds 1.5 times the median.
    private static let (originSpread, renderingSpread) = (0.6, 0.3)

    /// - Parameters:
    ///   - processors: the processors of each worker.
    ///   - workers: the number of workers, which share the jobs evenly.
    public init(_ workload: Workload, _ costs: Costs, processors: Int, workers: Int) {
        (self.workload, self.costs, self.processors) = (workload, costs, processors)
        arrivals = workload.rate / Double(workers)
    }

    /// Runs the simulation.
    public func run() -> Times {
        var numbers = Numbers(state: 1)
        var now = 0.0
        // The arrival times of rendered jobs, and the times at which their sources are available.
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
        let hit = costs.hit + (workload.storeRatio ?? 0) * workload.storeLatency
        return Times(
            mean: part * made + (1 - part) * hit, half: percentile(0.5), most: percentile(0.99))
    }
}

/// A deterministic random number generator: SplitMix64 (G. L. Steele, D. Lea, C. H. Flood, "Fast Splittable
/// Pseudorandom Number Generators", 2014).
private struct Numbers {
    var state: UInt64

    /// Returns a number above 0 and at most 1.
    mutating func next() -> Double {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        mixed ^= mixed >> 31
        return (Double(mixed >> 11) + 1) / 9_007_199_254_740_992
    }

    /// Returns a lognormal number.
    /// - Parameter spread: the standard deviation of the logarithm.
    mutating func lognormal(mean: Double, spread: Double) -> Double {
        // The Box-Muller transform (1958).
        let normal = (-2 * log(next())).squareRoot() * cos(2 * .pi * next())
        return mean * exp(spread * normal - spread * spread / 2)
    }
}
