import Concurrency
import HalcyonCluster
import HalcyonCoordination
import HalcyonImaging
import HalcyonModel
import HalcyonResults
import HalcyonSources
import Kafka
import Redis
import Telemetry

/// A worker, which processes jobs until it is drained. It owns its connections and threads.
public final class Worker: Sendable {
    private let consumer: JobConsumer
    private let producer: Producer
    /// The outbox of exactly-once delivery. Nil with at-least-once delivery.
    private let transactional: TransactionalOutbox?
    private let redis: RedisClient
    private let clock: ClusterClock
    private let subscriber: RedisSubscriber
    private let leases: Leases
    private let control: ControlReader
    private let batches: BatchLog
    private let tracker: BatchTracker
    private let presets: PresetCatalog
    private let pauses: PauseReplica
    /// The task that listens for newer generations of display slots.
    private let slotListener: Task<Void, Never>
    private let results: ResultCache
    private let resultStore: ResultStore?
    private let loader: SourceLoader
    private let sources: SourceCache
    private let pool: ThreadPool
    private let children: RenderProcessPool?
    private let detector: DetectorPool?
    private let service: RenderService
    private let health: Watchdog
    private let refusals: Refusals
    /// The task that submits refreshes.
    private let refreshing: Task<Void, Never>
    private let heartbeat: Heartbeat

    /// Starts a worker. It waits for servers that are unavailable instead of failing.
    /// - Parameters:
    ///   - tracer: The tracer for the spans of jobs. The caller closes its exporter after the worker has been
    ///     drained.
    ///   - onStuck: A callback that runs on its own thread when the worker has been stuck for
    ///     ``HealthOptions/exitAfter``.
    ///   - onEnd: A callback for fatal errors: another worker uses the same instance name, the brokers do not support
    ///     transactions, or the producer has failed. The caller is expected to drain the worker.
    /// - Throws: ``KafkaError`` that names a property rejected by librdkafka.
    public static func start(
        _ options: WorkerOptions, log: Log, metrics: Metrics, tracer: Tracer? = nil,
        onStuck: @escaping @Sendable () -> Void = {},
        onEnd: @escaping @Sendable (KafkaError) -> Void = { _ in }
    ) async throws -> Worker {
        let redis = RedisClient(
            options.redis,
            onStateChange: { [gauge = ConnectionMetrics.redis(metrics)] in
                $0.report(log)
                gauge.set($0.isServing ? 1 : 0)
            })
        let clock = ClusterClock(
            redis, log: log, errors: ToleratedErrors(of: "clock", log: log, metrics: metrics))
        await clock.set()
        let worker: Worker
        do {
            // Scanning the source cache folder may take a while.
            worker = try await blocking {
                try Worker(options, redis, clock, log: log, metrics: metrics, tracer, onStuck, onEnd)
            }
        } catch {
            await clock.close()
            await redis.close()
            throw error
        }
        do {
            await worker.transactional?.start()
            // The return of a static member causes no rebalance.
            if options.staticMember == nil { await worker.heartbeat.waitUntilSessionsExpire(log: log) }
            await worker.pauses.start { [weak worker] in worker?.consumer.updateHold() }
            try await worker.consumer.start(
                topics: options.topics.taken,
                properties: options.kafka.worker(
                    group: options.group, instance: options.staticMember,
                    revocationTimeout: options.consumer.revocationTimeout, exactlyOnce: options.transactions != nil),
                events: .logging(to: log, ConnectionMetrics.kafka(metrics, "consumer")))
        } catch {
            await worker.close(flushingFor: .zero)
            throw error
        }
        do {
            try await worker.tracker.start()
        } catch {
            await worker.close(flushingFor: .zero)
            throw error
        }
        worker.heartbeat.start()
        worker.resultStore?.start { await ResultCache(redis).beginSweep(of: $0) }
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
        _ onStuck: @escaping @Sendable () -> Void, _ onEnd: @escaping @Sendable (KafkaError) -> Void
    ) throws {
        func errors(of operation: String) -> ToleratedErrors {
            ToleratedErrors(of: operation, log: log, metrics: metrics)
        }
        (self.redis, self.clock) = (redis, clock)
        producer = try Producer(properties: options.kafka.producer, onFatal: onEnd)
        transactional = options.transactions.map { transactions in
            TransactionalOutbox(
                properties: options.kafka.transactions(group: options.group, instance: transactions.instance),
                options: transactions, events: .logging(to: log, ConnectionMetrics.kafka(metrics, "transactions")),
                log: log, metrics: metrics, onEnd: onEnd)
        }
        pool = Renderer.makePool(threads: options.concurrency)
        children = options.renderChildren.map {
            RenderProcessPool($0) { log.warning("render process event", ["said": $0.description]) }
        }
        detector = DetectorPool.make(options.detector, log: log, metrics: metrics)
        service = RenderService(
            renderer: Renderer(limits: options.imagesWithinMemory, extensions: options.extensions), pool: pool,
            children: children, memory: options.memory.renderings, detector: detector)
        service.measure(metrics)
        health = Watchdog(options.health, log: log, metrics: metrics, onStuck: onStuck)
        let refusals = Refusals(log: log)
        self.refusals = refusals
        let limiter = options.tenants.limits.isEmpty ? nil : FlowLimiter(options.tenants.limits)
        heartbeat = Heartbeat(
            redis, options.heartbeat, session: options.kafka.session, topics: options.topics,
            threads: options.concurrency, limiter: limiter,
            errors: errors(of: "heartbeat"))
        loader = SourceLoader(options.sources, custom: options.providers, drawingOn: pool)
        subscriber = RedisSubscriber(options.redis)
        leases = Leases(redis, subscriber, options.leases, log: log, metrics: metrics)
        let lanes = Lane.allCases.map { options.shares[$0] ?? 1 }
        let fetches = PrioritySemaphore(options.fetches, shares: lanes, reserve: options.fetches / 16)
        sources = try SourceCache(
            loader, redis, leases, permits: fetches, bytesPerPermit: options.memory.fetch,
            largest: options.sources.maximumBytes, options: options.sourceTier, limits: options.origins, log: log,
            metrics: metrics)
        results = ResultCache(redis, budget: options.results.budget, errors: errors(of: "budget"))
        resultStore = try options.resultStore.map { [results] options in
            let errors = errors(of: "superseded results")
            return try ResultStore.open(options, log: log, metrics: metrics) { result in
                await errors.tolerating { try await results.standing(of: result) } ?? .current
            }
        }
        let persist = resultStore.map { [results] in
            PersistStage(store: $0, results: results, errors: errors(of: "results"))
        }
        let store = StoreStage(
            results: results, persist: persist, options: options.results, log: log, metrics: StoreMetrics(metrics),
            errors: errors(of: "results"))
        let assets = AssetCache(
            maximumBytes: options.sources.sharedBytes, defaultLifetime: options.results.defaultLifetime
        ) { [sources] in try await sources.fetch($0, $1).source }
        let batches = BatchLog(
            options.topics, properties: options.kafka.control, retention: options.batches.retention, log: log)
        self.batches = batches
        let activeJobs = ActiveJobs(
            cancelled: CancelledJobs(
                capacity: options.cancelledJobs, lifetime: Int64(options.cancelMemory * 1000)),
            isBatchCancelled: { batches.isCancelled($0) })
        batches.onCancel { [weak activeJobs] in activeJobs?.cancel(batch: $0) }
        presets = PresetCatalog(
            options.presets, PresetStore(redis, topics: options.topics), restorationTime: options.presetRestoration,
            log: log)
        presets.start()
        let presetIndex = PresetIndex(redis, topics: options.topics, options.presetIndex)
        let reader = options.reader.withExtensions(options.extensions, options.providers).withPresets(presets)
        tracker = BatchTracker(
            options.batches, topics: options.topics, kafka: options.kafka, group: options.group,
            consumer: options.trackers, redis, producer, batches: batches,
            lists: BatchLists(reader: reader, presets: presets, index: presetIndex) { [loader] in
                try await loader.list($0, after: $1, count: $2)
            }, log: log, metrics: metrics)
        pauses = PauseReplica(PauseStore(redis, topics: options.topics), metrics: metrics)
        let messages = ControlMessageHandler(
            activeJobs: activeJobs, sources: sources, assets: assets, resultStore: resultStore, presets: presets,
            pauses: pauses, redis: redis, errors: errors(of: "control"), worker: heartbeat.id)
        control = ControlReader(options.control, log: log, metrics: metrics) { await messages.handle($0) }
        slotListener = Task { [subscriber] in
            await SupersedeStore.listen(subscriber) { activeJobs.supersede($0, by: $1) }
        }
        let publisher = PublishStage(
            events: EventPublisher(producer, topics: options.topics),
            outbox: transactional ?? AcknowledgedOutbox(producer), refusals: refusals, topics: options.topics,
            resultStore: options.resultStore, errors: errors(of: "events"), log: log)
        let lookup = LookupStage(
            results: results, tags: TagIndex(redis), persist: persist, inlineLimit: options.results.inlineLimit,
            errors: errors(of: "results"))
        let renderings = PrioritySemaphore(options.concurrency + options.concurrency / 4, shares: lanes)
        let render = RenderStage(
            sources: sources, assets: assets, service: service, permits: renderings,
            memory: ResultMemory(fetches, bytesPerPermit: options.memory.fetch),
            archive: options.archive.minimumPixels > 0
                ? ArchiveStage(
                    options.archive, service, renderings, options.extensions, log: log, metrics: metrics) : nil)
        let decoder = DecodeStage(
            reader: reader, topics: options.topics, tenants: options.tenants)
        let refresher = ResultRefresher(
            store: RefreshStore(redis, topics: options.topics, options: options.refresh), options: options.refresh,
            results: results, decoder: decoder, producer: producer, topics: options.topics,
            metrics: RefreshMetrics(metrics), log: log, errors: errors(of: "refreshes"))
        refreshing = Task { await refresher.run() }
        let pipeline = JobPipeline(
            decoder: decoder, presets: presets,
            lookup: lookup,
            resolver: ResultResolver(
                lookup: lookup, render: render, store: store, persist: persist,
                singleFlight: DistributedSingleFlightGroup(
                    .result, leases, degraded: PrioritySemaphore(options.fetchesWithoutLeases, shares: lanes))),
            store: store,
            upload: UploadStage(
                loader: loader, targets: TargetLimiter(options.putTargets, shares: lanes),
                permits: PrioritySemaphore(options.puts, shares: lanes), patience: options.putPatience,
                metrics: UploadMetrics(metrics)),
            publisher: publisher,
            progress: ProgressReports(interval: options.progressInterval, render: render, publisher: publisher),
            cancellations: CancellationChecker(
                activeJobs: activeJobs, supersedeStore: SupersedeStore(redis, errors: errors(of: "superseding")),
                control: control, batches: batches),
            tags: TagIndexer(
                tags: TagIndex(redis), persist: persist, purger: Purger(redis), log: log, errors: errors(of: "tags")),
            presetJobs: PresetIndexer(index: presetIndex, errors: errors(of: "presets")),
            retries: RetryScheduler(options.retries, options.topics),
            tracing: tracer.map { JobTracing(tracer: $0, group: options.group) },
            report: JobReport(
                metrics: WorkerMetrics(metrics, tenants: options.tenants.metrics), topics: options.topics, log: log),
            batches: BatchReporter(tracker: tracker), refresher: refresher)
        let process: @Sendable ([JobDelivery]) -> Void = { [health, heartbeat] deliveries in
            for delivery in deliveries {
                health.jobStarted()
                heartbeat.jobStarted(delivery)
            }
            Task {
                await pipeline.run(deliveries) { delivery in
                    health.jobFinished()
                    heartbeat.jobFinished(delivery)
                }
            }
        }
        var limits = options.consumer
        if options.overflows { limits.spilling = Set(options.topics.lanes) }
        limits.delayed = Set(options.topics.retries + options.topics.delays)
        let overflow = OverflowWriter(
            publisher.outbox, topics: options.topics, log: log, metrics: metrics, fail: process)
        consumer = JobConsumer(
            options: limits, commits: transactional ?? AsyncOffsetCommitter(), log: log, metrics: metrics,
            onEnd: onEnd, flow: decoder.flow, limiter: limiter, hold: { [pauses] in decoder.rule(for: pauses.current) },
            receive: process
        ) { deliveries in Task { await overflow.move(deliveries) } }
    }

    /// The health of the worker and its progress, as observed within the last second.
    public var liveness: (liveness: WatchdogState, progress: HealthSnapshot) { health.seen }

    /// True if the group has assigned partitions to this worker, possibly none, and the worker is not shutting down.
    public var isServing: Bool { consumer.isServing }

    /// Waits for the first partition assignment.
    public func ready() async {
        await transactional?.ready()
        await consumer.waitForAssignment()
        await tracker.ready()
    }

    /// Drains the worker. It accepts no more jobs, finishes those in flight within `grace`, commits, leaves the group,
    /// and closes all connections.
    /// - Returns: The number of jobs that were interrupted. They are not lost, because another worker receives them
    ///   again.
    public func shutdown(gracePeriod grace: Duration) async -> Int {
        let end = ContinuousClock.now + grace
        let cutShort = await consumer.shutdown(gracePeriod: grace)
        // Events of interrupted jobs may still be in flight. They may use the rest of the grace period.
        await close(flushingFor: min(.seconds(5), max(.zero, ContinuousClock.now.duration(to: end))))
        return cutShort
    }

    private func close(flushingFor limit: Duration) async {
        health.close()
        refreshing.cancel()
        await heartbeat.deregister()
        // Leases are released first, so that the next holder does not count a crash if this process is killed soon.
        await leases.close()
        service.cancelAll()
        await tracker.shutdown(gracePeriod: limit)
        await batches.close()
        await control.close()
        await presets.close()
        await pauses.close()
        await sources.close()
        await loader.close()
        await transactional?.close()
        await producer.close(flushingFor: limit)
        await refreshing.value
        await resultStore?.close(within: max(limit, .seconds(5)))
        await results.close()
        slotListener.cancel()
        await subscriber.close()
        await slotListener.value
        await clock.close()
        await redis.close()
        // Threads that do not react to being stopped must not delay the shutdown.
        await withTimeout(.seconds(3)) { [pool, children, detector] in
            await blocking {
                pool.shutdown()
                children?.shutdown()
                detector?.shutdown()
            }
        }
    }
}

extension RedisState {
    /// Logs once when Redis, or a primary of its cluster, becomes unavailable, and once when it is available again.
    fileprivate func report(_ log: Log) {
        switch self {
        case .connected: log.notice("connected to Redis")
        case .impaired(let error):
            log.warning(
                "a primary of the Redis cluster is unavailable; the others continue to serve", ["error": "\(error)"])
        case .lost(let error): log.warning("Redis is unavailable; waiting for it to return", ["error": "\(error)"])
        }
    }
}
