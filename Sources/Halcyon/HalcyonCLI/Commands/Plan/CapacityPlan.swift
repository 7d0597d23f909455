/// The capacity that a workload needs: workers, partitions, memory and traffic, estimated from the costs of jobs.
///
/// The number of processors follows from the work (rate × cost ÷ utilization). The number of fetches in flight follows
/// from Little's law (rate × latency; J. D. C. Little, "A Proof for the Queuing Formula L = λW", 1961).
/// The latencies of jobs come from ``QueueSimulation``.
public struct CapacityPlan: Sendable {
    /// The mean number of processors that the work of all workers uses.
    public let processors: Double
    /// The resource that determines the number of workers.
    public enum Bound: String, Sendable {
        /// Processor time.
        case processors
        /// Fetches in flight, which each worker limits.
        case fetches
        /// No resource, because one worker is enough.
        case nothing
    }

    /// The number of workers, including spare ones.
    public let workers: Int
    /// The resource that requires the most workers.
    public let bound: Bound
    /// The mean number of fetches in flight over all workers.
    public let fetchesUnderWay: Double
    /// The latencies of jobs at the utilization that the rules allow.
    public let times: QueueSimulation.Times
    /// The number of partitions of each lane.
    public let partitions: Int
    /// The memory of one worker in bytes.
    public let workerBytes: Double

    /// The number of results that Redis stores at the same time.
    public let storedResults: Double
    /// The use of the result store; nil if there is none.
    public let store: StorePlan?
    /// The memory in bytes that Redis needs for results and for cached sources.
    public let (resultMemory, sourceMemory): (Double, Double)
    /// The mean number of processors that Redis uses. A single server uses at most one.
    public let redisProcessors: Double
    /// The number of Redis servers that the work requires.
    public let redisServers: Int

    /// The traffic in bytes per second: from origins, to and from Redis, and to Kafka.
    public let (originTraffic, redisTraffic, kafkaTraffic): (Double, Double, Double)
    /// The bytes that Kafka retains. Multiply by the replication factor for disk space.
    public let kafkaDisk: Double
    /// The mean number of processors that each gateway uses to follow events.
    public let gatewayProcessors: Double

    /// Estimates the capacity for a workload.
    public init(_ workload: Workload, _ costs: Costs, _ rules: PlanRules = PlanRules()) {
        let results = min(workload.made * workload.life, workload.distinct ?? .infinity) * Double(workload.outputs)
        let output = workload.resultBytes / Double(workload.outputs)
        let resultBytes = (output + costs.redisEntryBytes) * rules.redisSlack
        var workload = workload
        if let limit = rules.redisResultBytes {
            // With equally popular results, Redis serves the fraction that it stores.
            storedResults = min(results, limit / resultBytes)
            workload.storeRatio = workload.storeRatio ?? (1 - storedResults / results)
        } else {
            storedResults = results * (1 - (workload.storeRatio ?? 0))
        }
        resultMemory = storedResults * resultBytes
        store = workload.storeRatio.map { _ in StorePlan(workload, costs, results: results) }

        processors = workload.rate * costs.worker(workload)
        fetchesUnderWay = workload.fetched * workload.originLatency
        let byProcessors = processors / (rules.utilization * Double(rules.processors))
        let byFetches = fetchesUnderWay / (rules.utilization * Double(rules.fetches))
        let needed = max(1, Int(max(byProcessors, byFetches).rounded(.up)))
        bound = needed == 1 ? .nothing : byFetches > byProcessors ? .fetches : .processors
        workers = needed + rules.spare

        times = QueueSimulation(workload, costs, processors: rules.processors, workers: needed).run()
        let inFlight = workload.rate * times.mean
        let byWindow = inFlight / (rules.utilization * Double(rules.window))
        partitions = Self.rounded(max(byWindow, Double(workers) * rules.partitionsAWorker), to: rules.partitionStep)

        let fetchesHere = max(1, fetchesUnderWay / Double(needed) / rules.utilization)
        workerBytes =
            costs.workerBytes + Double(rules.processors) * costs.renderingBytes + fetchesHere * workload.sourceBytes
            + (store == nil ? 0 : rules.storeQueueBytes)

        let kept = workload.sourceSizes.filter { $0 <= rules.keptSourceBytes }
        let keptBytes = kept.reduce(0) { $0 + $1 + costs.redisEntryBytes } / Double(workload.sourceSizes.count)
        sourceMemory = workload.fetched * rules.sourceLife * keptBytes * rules.redisSlack
        redisProcessors = workload.rate * costs.redis(workload)
        redisServers = max(1, Int((redisProcessors / rules.utilization).rounded(.up)))

        originTraffic = workload.fetched * workload.sourceBytes
        redisTraffic =
            workload.made * (workload.resultBytes + workload.sourceBytes) + workload.restored * workload.resultBytes
        // A rendered job has two events: one when it starts and one when it ends.
        let events = workload.rate + workload.made
        let (jobTraffic, eventTraffic) = (workload.rate * workload.jobBytes, events * workload.eventBytes)
        kafkaTraffic = jobTraffic + eventTraffic
        kafkaDisk = jobTraffic * rules.jobRetention + eventTraffic * rules.eventRetention
        gatewayProcessors = costs.gateway(events: events)
    }

    /// Rounds up to a multiple of `step`, at least `step`.
    private static func rounded(_ value: Double, to step: Int) -> Int {
        max(1, Int((value / Double(step)).rounded(.up))) * step
    }
}

/// The use of a result store.
public struct StorePlan: Sendable {
    /// The number of results in the store and their size in bytes.
    public let (results, bytes): (Double, Double)
    /// The fraction of the cache hits that the store serves.
    public let ratio: Double
    /// Requests per second. Each result that is not in Redis is looked up, and each rendered result is written.
    public let (gets, puts): (Double, Double)
    /// The traffic in bytes per second.
    public let (read, written): (Double, Double)
    /// The mean number of processors that all workers use for the store.
    public let processors: Double

    init(_ workload: Workload, _ costs: Costs, results: Double) {
        let outputs = Double(workload.outputs)
        self.results = results
        bytes = results * (workload.resultBytes / outputs + costs.storeEntryBytes)
        ratio = workload.storeRatio ?? 0
        (gets, puts) = ((workload.restored + workload.made) * outputs, workload.made * outputs)
        (read, written) = (workload.restored * workload.resultBytes, workload.made * workload.resultBytes)
        processors = costs.store(workload)
    }
}

/// The assumptions of a plan: worker settings, topic retention and headroom.
public struct PlanRules: Hashable, Sendable {
    /// The fraction of processors, fetch permits and in-flight windows that peak load may use. The rest is headroom.
    public var utilization = 0.7
    /// The number of workers that can fail while the others stay within ``utilization``.
    public var spare = 1
    /// The processors of a worker, which is the number of concurrent renderings (`worker.concurrency`).
    public var processors = 2
    /// The limit of sources in flight or in memory (`worker.fetches`).
    public var fetches = 256
    /// The limit of jobs in flight per partition (`worker.maximumInFlight`).
    public var window = 256
    /// The number of partitions per lane and worker. More partitions share the work more evenly after a rebalance.
    public var partitionsAWorker = 2.0
    /// The number of partitions is a multiple of this value, which many worker counts divide evenly.
    public var partitionStep = 12
    /// The maximum size of a source that Redis caches (`sources.redisBytes`), and its retention in seconds
    /// (`sources.redisRetention`).
    public var (keptSourceBytes, sourceLife) = (1_048_576.0, 3600.0)
    /// The memory of Redis for results above a result store in bytes; nil if ``Workload/storeRatio`` determines it.
    public var redisResultBytes: Double?
    /// The limit of results that wait to be written to a result store (`results.store.queueBytes`).
    public var storeQueueBytes = 67_108_864.0
    /// The ratio of allocated to requested memory, which accounts for allocator overhead.
    public var redisSlack = 1.1
    /// The retention of jobs and of events in Kafka, in seconds (`halcyon topics create`).
    public var (jobRetention, eventRetention) = (604_800.0, 86_400.0)

    /// Creates rules with default values.
    public init() {}
}

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
