import HalcyonCLI
import Testing

@Suite struct QueueSimulationTests {
    func times(busy: Double, processors: Int = 1, latency: Double = 0, hits: Double = 0) -> QueueSimulation.Times {
        var costs = Costs(unit: Reference.unit, rendering: 0.01, renderingBytes: 0)
        (costs.hit, costs.miss, costs.megabyte) = (0, 0, 0)
        var workload = Workload(
            rate: busy * Double(processors) / 0.01 / max(1 - hits, 0.001), sourceSizes: [0], resultBytes: 0)
        (workload.originLatency, workload.hitRatio) = (latency, hits)
        return QueueSimulation(workload, costs, processors: processors, workers: 1).run()
    }

    /// The mean time in an M/G/1 queue is service + λ E[S²] / (2 (1 − ρ)) (F. Pollaczek, 1930; A. Khinchin, 1932). For a
    /// lognormal service time with a spread of 0.3, E[S²] is e^0.09 times the square of the mean. With 40,000 jobs, the
    /// fuller the queue, the longer one busy period has an effect.
    @Test(arguments: [0.3, 0.5, 0.7, 0.8]) func oneProcessorMatchesPollaczekKhinchin(_ busy: Double) {
        let expected = 0.01 + busy * 0.01 * 1.0942 / (2 * (1 - busy))
        #expect(abs(times(busy: busy).mean / expected - 1) < 0.1)
    }

    @Test func moreProcessorsShortenTheWait() {
        let (one, eight) = (times(busy: 0.8), times(busy: 0.8, processors: 8))
        #expect(eight.mean < one.mean / 1.5 && eight.mean > 0.01)
        #expect(one.half < one.most)
    }

    @Test func idleQueueTakesFetchPlusRenderingTime() {
        let times = times(busy: 0.01, processors: 4, latency: 0.2)
        #expect(abs(times.mean - 0.21) < 0.01)
        // The median of lognormal times with that spread.
        #expect(abs(times.half - (0.2 * 0.835 + 0.01)) < 0.01)
    }

    @Test func cacheHitsTakeNoTime() {
        let times = times(busy: 0.5, hits: 1)
        #expect(times.mean == 0 && times.most == 0)
    }

    @Test func isDeterministic() {
        #expect(times(busy: 0.7, processors: 2, latency: 0.1) == times(busy: 0.7, processors: 2, latency: 0.1))
    }
}
