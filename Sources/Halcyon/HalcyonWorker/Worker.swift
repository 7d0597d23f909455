import HalcyonCluster
import HalcyonCoordination
import HalcyonImaging
import HalcyonModel
import HalcyonSources
import Kafka
import Redis
import Telemetry
import Threads

/// A worker: takes jobs until it is drained. It owns its connections and threads.
public final class Worker: Sendable {
    private let consumer: JobConsumer
    private let producer: Producer
    /// Of exactly-once delivery.
    private let transactional: TransactionalOutbox?
    private let redis: RedisClient
    private let clock: ClusterClock
    private let subscriber: RedisSubscriber
    private let leases: Leases
    private let control: ControlReader
    /// Hears of newer generations of slots.
    private let slotListener: Task<Void, Never>
    private let results: ResultTier
    private let loader: SourceLoader
    private let sources: SourceCache
    private let pool: ThreadPool
    private let children: RenderChildren?
    private let service: RenderService
    private let health: HealthWatch
    private let refusals: Refusals
    private let roll: RollCall

    /// Starts to take jobs. Servers that are away are waited for: that is no error.
    /// - Parameters:
    ///   - tracer: takes the spans of jobs. It stays its maker's, who closes its exporter when the worker has been drained.
    ///   - whenHopeless: called, on a thread of its own, when the worker has been stuck for ``HealthOptions/stuckLimit``.
    ///   - onEnd: called when the worker can do nothing more, with the reason: another one has its name, the brokers know no
    ///     transactions, or nothing can be produced any more. It is to be drained then.
    /// - Throws: ``KafkaError`` that names a property which librdkafka refuses.
    public static func start(
        _ options: WorkerOptions, log: Log, metrics: Metrics, tracer: Tracer? = nil,
        whenHopeless: @escaping @Sendable () -> Void = {},
        onEnd: @escaping @Sendable (KafkaError) -> Void = { _ in }
    ) async throws -> Worker {
        let redis = RedisClient(
            options.redis,
            onStateChange: { [gauge = ConnectionMetrics.redis(metrics)] in
                $0.tell(log)
                gauge.set($0.isServing ? 1 : 0)
            })
        let clock = ClusterClock(
            redis, log: log, errors: ToleratedErrors(of: "clock", log: log, metrics: metrics))
        await clock.set()
        let worker: Worker
        do {
            // Its folder of sources is looked through, which may take a while.
            worker = try await blocking {
                try Worker(options, redis, clock, log: log, metrics: metrics, tracer, whenHopeless, onEnd)
            }
        } catch {
            await clock.close()
            await redis.close()
            throw error
        }
        do {
            await worker.transactional?.start()
            // A static member that comes back moves nothing.
            if options.staticMember == nil { await worker.roll.waitUntilSessionsExpire(log: log) }
            try await worker.consumer.start(
                topics: options.topics.taken,
                properties: options.kafka.worker(
                    group: options.group, instance: options.staticMember,
                    patience: options.consumer.revocationPatience, exactlyOnce: options.transactions != nil),
                events: .telling(log, ConnectionMetrics.kafka(metrics, "consumer")))
        } catch {
            await worker.close(flushingFor: .zero)
            throw error
        }
        worker.roll.start()
        worker.health.start { [weak worker] progress in
            progress.lastPoll = worker?.consumer.lastPolled ?? progress.lastPoll
            progress.renderLimit = worker?.service.firstLimit
            progress.refusedSince = worker?.refusals.since
        }
        return worker
    }

    private init(
        _ options: WorkerOptions, _ redis: RedisClient, _ clock: ClusterClock, log: Log, metrics: Metrics,
        _ tracer: Tracer?,
        _ whenHopeless: @escaping @Sendable () -> Void, _ onEnd: @escaping @Sendable (KafkaError) -> Void
    ) throws {
        func errors(of operation: String) -> ToleratedErrors {
            ToleratedErrors(of: operation, log: log, metrics: metrics)
        }
        (self.redis, self.clock) = (redis, clock)
        producer = try Producer(properties: options.kafka.producer, onFatal: onEnd)
        transactional = options.transactions.map { transactions in
            TransactionalOutbox(
                properties: options.kafka.transactions(group: options.group, instance: transactions.instance),
                options: transactions, events: .telling(log, ConnectionMetrics.kafka(metrics, "transactions")),
                log: log, metrics: metrics, onEnd: onEnd)
        }
        pool = Renderer.makePool(threads: options.concurrency)
        children = options.renderChildren.map {
            RenderChildren($0) { log.warning("render child", ["said": $0.description]) }
        }
        service = RenderService(
            renderer: Renderer(limits: options.imagesWithinMemory, extensions: options.extensions), pool: pool,
            children: children, memory: options.memory.renderings)
        service.measure(metrics)
        health = HealthWatch(options.health, log: log, metrics: metrics, whenHopeless: whenHopeless)
        let refusals = Refusals(log: log)
        self.refusals = refusals
        roll = RollCall(
            redis, options.roll, session: options.kafka.session, topics: options.topics, threads: options.concurrency,
            errors: errors(of: "roll"))
        loader = SourceLoader(options.sources, custom: options.providers, drawingOn: pool)
        subscriber = RedisSubscriber(options.redis)
        leases = Leases(redis, subscriber, options.leases, log: log, metrics: metrics)
        let lanes = Lane.allCases.map { options.shares[$0] ?? 1 }
        let fetches = Slots(options.fetches, shares: lanes)
        sources = try SourceCache(
            loader, redis, leases, permits: fetches, bytesPerPermit: options.memory.fetch,
            largest: options.sources.maximumBytes, options: options.sourceTier, limits: options.origins, log: log,
            metrics: metrics)
        results = ResultTier(redis, budget: options.results.budget, errors: errors(of: "budget"))
        let store = StoreStage(
            results: results, options: options.results, log: log, metrics: StoreMetrics(metrics),
            errors: errors(of: "results"))
        let assets = SharedSources(
            maximumBytes: options.sources.sharedBytes, defaultLifetime: options.results.defaultLifetime
        ) { [sources] in try await sources.fetch($0, $1).source }
        let activeJobs = ActiveJobs(
            cancelled: CancelledJobs(
                capacity: options.cancelledJobs, lifetime: Int64(options.cancelMemory * 1000)))
        let messages = ControlMessageHandler(activeJobs: activeJobs, sources: sources, assets: assets)
        control = ControlReader(options.control, log: log, metrics: metrics) { await messages.handle($0) }
        slotListener = Task { [subscriber] in
            await SlotBook.listen(subscriber) { activeJobs.supersede($0, by: $1) }
        }
        let publisher = PublishStage(
            events: EventPublisher(producer, topics: options.topics),
            outbox: transactional ?? AcknowledgedOutbox(producer), refusals: refusals, topics: options.topics,
            errors: errors(of: "events"))
        let lookup = LookupStage(
            results: results, inlineLimit: options.results.inlineLimit, errors: errors(of: "results"))
        let render = RenderStage(
            sources: sources, assets: assets, service: service,
            permits: Slots(options.concurrency * 2, shares: lanes),
            memory: ResultMemory(fetches, bytesPerPlace: options.memory.fetch))
        let pipeline = JobPipeline(
            decoder: DecodeStage(
                reader: options.reader.knowing(options.extensions, options.providers), topics: options.topics),
            lookup: lookup,
            resolver: ResultResolver(
                lookup: lookup, render: render, store: store,
                flight: DistributedSingleFlight(
                    .result, leases, degraded: Slots(options.fetchesWithoutLeases, shares: lanes))),
            store: store,
            upload: UploadStage(loader, permits: Slots(options.puts, shares: lanes), metrics: metrics),
            publisher: publisher,
            progress: ProgressReports(interval: options.progressInterval, render: render, publisher: publisher),
            cancellations: CancellationChecker(
                activeJobs: activeJobs, slots: SlotBook(redis, errors: errors(of: "slots")), control: control),
            tags: TagIndexer(
                tags: TagIndex(redis), purger: Purger(redis), log: log, errors: errors(of: "tags")),
            retries: RetryScheduler(options.retries, options.topics),
            tracing: tracer.map { JobTracing(tracer: $0, group: options.group) },
            report: JobReport(metrics: WorkerMetrics(metrics), topics: options.topics, log: log))
        consumer = JobConsumer(
            options: options.consumer, commits: transactional ?? DirectCommits(), log: log, metrics: metrics,
            onEnd: onEnd
        ) { [health, roll] deliveries in
            for delivery in deliveries {
                health.took()
                roll.took(from: delivery.record.topic)
            }
            Task {
                await pipeline.run(deliveries) { delivery in
                    health.ended()
                    roll.ended(from: delivery.record.topic)
                }
            }
        }
    }

    /// Whether it gets on, and what it is at: as it was seen within the last second.
    public var liveness: (liveness: Liveness, progress: Progress) { health.seen }

    /// Whether the group has given this worker its share, be it empty, and it is not leaving.
    public var isServing: Bool { consumer.isServing }

    /// Waits until the group has given this worker its share for the first time.
    public func ready() async {
        await transactional?.ready()
        await consumer.assignedOnce()
    }

    /// Takes no more jobs, finishes what was begun within `grace`, commits, leaves the group, and closes everything.
    /// - Returns: how many jobs were cut short. They are not lost: another worker takes them again.
    public func drain(grace: Duration) async -> Int {
        let end = ContinuousClock.now + grace
        let cutShort = await consumer.drain(grace: grace)
        // Of what was cut short an event may be on its way: it has what is left of the grace.
        await close(flushingFor: min(.seconds(5), max(.zero, ContinuousClock.now.duration(to: end))))
        return cutShort
    }

    private func close(flushingFor limit: Duration) async {
        health.close()
        await roll.leave()
        await control.close()
        // Whoever has the lease next is not told of a death.
        await leases.close()
        service.stopAll()
        await sources.close()
        await loader.close()
        await transactional?.close()
        await producer.close(flushingFor: limit)
        await results.close()
        slotListener.cancel()
        await subscriber.close()
        await slotListener.value
        await clock.close()
        await redis.close()
        // What does not listen to being stopped must not hold up leaving either.
        await atMost(.seconds(3)) { [pool, children] in
            await blocking {
                pool.shutdown()
                children?.shutdown()
            }
        }
    }
}

extension RedisState {
    /// Says once when Redis, or a master of its cluster, is away and once when it is back.
    fileprivate func tell(_ log: Log) {
        switch self {
        case .connected: log.notice("connected to Redis")
        case .impaired(let error):
            log.warning("a master of the Redis cluster is away; the others serve on", ["error": "\(error)"])
        case .lost(let error): log.warning("Redis is away; waiting for it", ["error": "\(error)"])
        }
    }
}
