/// What a workload needs: workers, partitions, memory and traffic, reckoned from what jobs cost.
///
/// Processors follow from work (rate × cost ÷ utilization), loads under way from Little's law (rate × latency; J. D. C. Little, "A Proof for
/// the Queuing Formula L = λW", 1961), times of jobs from ``LineSimulation``.
public struct CapacityPlan: Sendable {
    /// Processors that the workers' work takes, in the mean.
    public let processors: Double
    /// Why there must be as many workers as there must.
    public enum Bound: String, Sendable {
        /// The processors' work.
        case processors
        /// Sources on their way, of which a worker has room for so many.
        case fetches
        /// One could do it.
        case nothing
    }

    /// Workers, those to spare among them.
    public let workers: Int
    /// What asks for the most workers.
    public let bound: Bound
    /// Sources on their way, over all workers, in the mean.
    public let fetchesUnderWay: Double
    /// What jobs take, while one part of the workers is busy that the rules allow.
    public let times: LineSimulation.Times
    /// Partitions of each lane.
    public let partitions: Int
    /// Bytes of memory of one worker.
    public let workerBytes: Double

    /// Results in Redis at once.
    public let storedResults: Double
    /// Bytes that Redis needs for results, and for sources that it keeps.
    public let (resultMemory, sourceMemory): (Double, Double)
    /// Processors that Redis' work takes; one server uses one.
    public let redisProcessors: Double
    /// Redis servers that share the keys, by work alone.
    public let redisServers: Int

    /// Bytes a second: from origins, into Redis and out of it, into Kafka.
    public let (originTraffic, redisTraffic, kafkaTraffic): (Double, Double, Double)
    /// Bytes that Kafka keeps, each once; times the replication on disks.
    public let kafkaDisk: Double
    /// Processors that each gateway takes for following the events.
    public let gatewayProcessors: Double

    /// Reckons it.
    public init(_ workload: Workload, _ costs: Costs, _ rules: PlanRules = PlanRules()) {
        processors = workload.rate * costs.worker(workload)
        fetchesUnderWay = workload.fetched * workload.originLatency
        let byProcessors = processors / (rules.utilization * Double(rules.processors))
        let byFetches = fetchesUnderWay / (rules.utilization * Double(rules.fetches))
        let needed = max(1, Int(max(byProcessors, byFetches).rounded(.up)))
        bound = needed == 1 ? .nothing : byFetches > byProcessors ? .fetches : .processors
        workers = needed + rules.spare

        times = LineSimulation(workload, costs, processors: rules.processors, workers: needed).run()
        let underWay = workload.rate * times.mean
        let byWindow = underWay / (rules.utilization * Double(rules.window))
        partitions = Self.rounded(max(byWindow, Double(workers) * rules.partitionsAWorker), to: rules.partitionStep)

        let fetchesHere = max(1, fetchesUnderWay / Double(needed) / rules.utilization)
        workerBytes =
            costs.workerBytes + Double(rules.processors) * costs.renderingBytes + fetchesHere * workload.sourceBytes

        storedResults = min(workload.made * workload.life, workload.distinct ?? .infinity) * Double(workload.outputs)
        let output = workload.resultBytes / Double(workload.outputs)
        resultMemory = storedResults * (output + costs.redisEntryBytes) * rules.redisSlack
        let kept = workload.sourceSizes.filter { $0 <= rules.keptSourceBytes }
        let keptBytes = kept.reduce(0) { $0 + $1 + costs.redisEntryBytes } / Double(workload.sourceSizes.count)
        sourceMemory = workload.fetched * rules.sourceLife * keptBytes * rules.redisSlack
        redisProcessors = workload.rate * costs.redis(workload)
        redisServers = max(1, Int((redisProcessors / rules.utilization).rounded(.up)))

        originTraffic = workload.fetched * workload.sourceBytes
        redisTraffic = workload.made * (workload.resultBytes + workload.sourceBytes)
        // A job that is made is told of twice: when it is begun, and when it ends.
        let events = workload.rate + workload.made
        let (jobTraffic, eventTraffic) = (workload.rate * workload.jobBytes, events * workload.eventBytes)
        kafkaTraffic = jobTraffic + eventTraffic
        kafkaDisk = jobTraffic * rules.jobRetention + eventTraffic * rules.eventRetention
        gatewayProcessors = costs.gateway(events: events)
    }

    /// Whole steps, at least one.
    private static func rounded(_ value: Double, to step: Int) -> Int {
        max(1, Int((value / Double(step)).rounded(.up))) * step
    }
}

/// What a plan may take for granted: settings of workers, retentions of topics, and room to spare.
public struct PlanRules: Hashable, Sendable {
    /// Part of processors, places for fetches and windows that the busiest time may take; what is left is for what nobody foresaw.
    public var utilization = 0.7
    /// Workers that may be away while the others keep within ``utilization``.
    public var spare = 1
    /// Processors of a worker, and so renderings at once (`worker.concurrency`).
    public var processors = 2
    /// Sources on their way or in memory (`worker.fetches`).
    public var fetches = 256
    /// Jobs of one partition under way (`worker.window`).
    public var window = 256
    /// So many partitions of a lane for each worker share the work evenly when workers come and go.
    public var partitionsAWorker = 2.0
    /// Partitions are a multiple of it, which many numbers of workers divide.
    public var partitionStep = 12
    /// The largest source that Redis keeps (`sources.redisBytes`), and for how many seconds (`sources.redisRetention`).
    public var (keptSourceBytes, sourceLife) = (1_048_576.0, 3600.0)
    /// What an allocator takes beside what it was asked for.
    public var redisSlack = 1.1
    /// Seconds for which Kafka keeps jobs, and events (`halcyon topics create`).
    public var (jobRetention, eventRetention) = (604_800.0, 86_400.0)

    /// The defaults.
    public init() {}
}
