import HalcyonCLI
import Testing

@Suite struct CapacityPlanTests {
    /// 100 jobs per second that take 10 ms each, which is the load of one processor.
    static let workload: Workload = {
        var workload = Workload(rate: 100, sourceSizes: [500_000], resultBytes: 30_000)
        workload.originLatency = 0.1
        return workload
    }()
    static let costs: Costs = {
        var costs = Costs(unit: Reference.unit, rendering: 0.008, renderingBytes: 20e6)
        (costs.hit, costs.miss, costs.megabyte) = (0.0001, 0.001, 0.002)
        return costs
    }()

    func plan(_ change: (inout Workload, inout PlanRules) -> Void) -> CapacityPlan {
        var (workload, rules) = (Self.workload, PlanRules())
        change(&workload, &rules)
        return CapacityPlan(workload, Self.costs, rules)
    }

    @Test func workersCoverTheLoadWithSpares() {
        let one = plan { _, _ in }
        #expect(abs(one.processors - 1) < 1e-9)
        // One processor of 0.7 × 2, and one spare worker.
        #expect(one.workers == 2 && one.bound == .nothing)
        let hundred = plan { workload, rules in
            workload.rate = 10_000
            rules.spare = 2
        }
        #expect(hundred.workers == 72 + 2 && hundred.bound == .processors)
    }

    @Test func cacheHitsReduceTheLoad() {
        let plan = plan { workload, _ in workload.hitRatio = 0.9 }
        #expect(abs(plan.processors - 100 * (0.9 * 0.0001 + 0.1 * 0.01)) < 1e-9)
    }

    /// 10,000 fetches in flight by Little's law, with a limit of 256 per worker.
    @Test func slowOriginsRequireMoreWorkers() {
        let plan = plan { workload, rules in
            (workload.rate, workload.originLatency) = (1000, 10)
            (rules.processors, rules.spare) = (16, 0)
        }
        #expect(plan.fetchesUnderWay == 10_000)
        #expect(plan.bound == .fetches && plan.workers == 56)
    }

    @Test func cachedSourcesAreNotFetched() {
        let plan = plan { workload, _ in workload.keptRatio = 0.75 }
        #expect(plan.fetchesUnderWay == 2.5 && plan.originTraffic == 12_500_000)
    }

    @Test func partitionsSufficeForWorkersAndJobsInFlight() {
        #expect(plan { _, _ in }.partitions == 12)
        let many = plan { workload, _ in workload.rate = 10_000 }
        #expect(many.partitions >= 2 * many.workers && many.partitions % 12 == 0)
        let slow = plan { workload, rules in
            (workload.rate, workload.originLatency) = (1000, 30)
            (rules.processors, rules.fetches) = (64, 100_000)
        }
        // More than 30,000 jobs in flight, 256 × 0.7 per partition.
        #expect(slow.workers == 2 && slow.partitions > 150 && slow.partitions < 200)
    }

    @Test func redisMemoryCoversLiveResultsAndSources() {
        let plan = plan { workload, rules in
            (workload.life, workload.outputs) = (1000, 3)
            rules.redisSlack = 1
        }
        #expect(plan.storedResults == 300_000)
        #expect(abs(plan.resultMemory - 300_000 * (10_000 + 900)) < 1)
        #expect(abs(plan.sourceMemory - 100 * 3600 * 500_900) < 1)
        // One of three sources is too large to be cached.
        let mixed = self.plan { workload, rules in
            workload.sourceSizes = [100_000, 200_000, 1_048_577]
            rules.redisSlack = 1
        }
        #expect(abs(mixed.sourceMemory - 100 * 3600 * (300_000 + 1800) / 3) < 1)
        let few = self.plan { workload, rules in
            (workload.distinct, workload.sourceSizes) = (5000, [2e6])
        }
        #expect(few.storedResults == 5000 && few.sourceMemory == 0)
    }

    @Test func aStoreHoldsAllResultsAndRedisThoseInUse() {
        func plan(_ ratio: Double?, _ bytes: Double? = nil) -> CapacityPlan {
            self.plan { workload, rules in
                (workload.hitRatio, workload.life, workload.outputs, workload.storeRatio) = (0.5, 1000, 2, ratio)
                (rules.redisSlack, rules.redisResultBytes) = (1, bytes)
            }
        }
        #expect(plan(nil).store == nil && plan(nil).storedResults == 100_000)
        let tenth = plan(0.1)
        #expect(abs(tenth.storedResults - 90_000) < 1 && tenth.store?.results == 100_000)
        #expect(tenth.store?.puts == 100 && abs((tenth.store?.gets ?? 0) - 110) < 1e-9)
        #expect(tenth.store?.written == 1_500_000 && abs((tenth.store?.read ?? 0) - 150_000) < 1e-6)
        #expect(tenth.store?.bytes == 100_000 * (15_000 + Self.costs.storeEntryBytes))
        let work = (5 * Self.costs.storeHit + 50 * Self.costs.storeWrite) * 2
        #expect(abs((tenth.store?.processors ?? 0) - work) < 1e-9)
        #expect(abs(tenth.processors - plan(nil).processors - work) < 1e-9)
        #expect(tenth.redisProcessors > plan(nil).redisProcessors && tenth.times.mean > plan(nil).times.mean)
        // Room for a quarter of the results, which then serves a quarter of the hits.
        let quarter = plan(nil, 25_000 * 15_900)
        #expect(abs((quarter.store?.ratio ?? 0) - 0.75) < 1e-9 && abs(quarter.storedResults - 25_000) < 1e-6)
        #expect(plan(0.2, 25_000 * 15_900).store?.ratio == 0.2)
        #expect(plan(nil, 1e12).store?.ratio == 0 && plan(nil, 1e12).storedResults == 100_000)
    }

    @Test func batchedEventsShareTheCostOfWakeUps() {
        let (few, many) = (Self.costs.gateway(events: 100), Self.costs.gateway(events: 10_000))
        #expect(few > 100 * Self.costs.following && many < 10 * few)
    }

    @Test func calibratedCostsScaleWithTheMachine() {
        let (usual, slow) = (
            Costs(unit: Reference.unit, rendering: 0.01, renderingBytes: 0),
            Costs(unit: Reference.unit * 2, rendering: 0.01, renderingBytes: 0)
        )
        #expect(slow.miss == usual.miss * 2 && slow.redisHit == usual.redisHit * 2 && slow.rendering == usual.rendering)
    }
}
