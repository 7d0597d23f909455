import HalcyonCluster
import HalcyonImaging
import HalcyonRendering
import HalcyonSources
import Kafka
import Redis
import Telemetry
import Threads

/// A worker: takes jobs until it is drained. It owns its connections and threads.
public final class Worker: Sendable {
    private let consumer: JobConsumer
    private let producer: Producer
    private let redis: RedisClient
    private let results: ResultTier
    private let loader: SourceLoader
    private let sources: SourceTier
    private let pool: ThreadPool
    private let children: RenderChildren?

    /// Starts to take jobs. Servers that are away are waited for: that is no error.
    /// - Throws: ``KafkaError`` that names a property which librdkafka refuses.
    public static func start(_ options: WorkerOptions, log: Log, metrics: Metrics) async throws -> Worker {
        // Its folder of sources is looked through, which may take a while.
        let worker = try await blocking { try Worker(options, log: log, metrics: metrics) }
        do {
            try await worker.consumer.start(
                topics: options.topics, properties: options.kafka.worker(group: options.group), events: .telling(log))
        } catch {
            await worker.close()
            throw error
        }
        return worker
    }

    private init(_ options: WorkerOptions, log: Log, metrics: Metrics) throws {
        producer = try Producer(properties: options.kafka.producer)
        redis = RedisClient(options.redis, onStateChange: { $0.tell(log) })
        pool = Renderer.makePool(threads: options.concurrency)
        children = options.renderChildren.map {
            RenderChildren($0) { log.warning("render child", ["said": $0.description]) }
        }
        loader = SourceLoader(options.sources, custom: options.providers, drawingOn: pool)
        sources = try SourceTier(
            loader, redis, options: options.sourceTier, limits: options.origins, log: log, metrics: metrics)
        results = ResultTier(redis, budget: options.results.budget)
        let line = Line(
            intake: Intake(reader: options.reader.knowing(options.extensions, options.providers)),
            lookup: Lookup(results: results, inlineLimit: options.results.inlineLimit),
            fetch: Fetch(
                sources: sources,
                shared: SharedSources(
                    maximumBytes: options.sources.sharedBytes, defaultLifetime: options.results.defaultLifetime
                ) { [sources] in try await sources.load($0).source },
                places: Slots(options.fetches)),
            render: Render(
                service: RenderService(
                    renderer: Renderer(limits: options.images, extensions: options.extensions), pool: pool,
                    children: children),
                places: Slots(options.concurrency * 2)),
            store: Store(results: results, options: options.results, log: log),
            publish: Publish(
                events: EventPublisher(producer, topics: options.topics),
                deadLetters: DeadLetters(producer, topics: options.topics)),
            metrics: WorkerMetrics(metrics), log: log)
        consumer = JobConsumer(options: options.consumer, log: log) { taken in
            Task { await line.run(taken) }
        }
    }

    /// Waits until the group has given this worker its share for the first time.
    public func ready() async { await consumer.assignedOnce() }

    /// Takes no more jobs, finishes what was begun within `grace`, commits, leaves the group, and closes everything.
    /// - Returns: how many jobs were cut short. They are not lost: another worker takes them again.
    public func drain(grace: Duration) async -> Int {
        let cutShort = await consumer.drain(grace: grace)
        await close()
        return cutShort
    }

    private func close() async {
        await sources.close()
        await loader.close()
        await producer.close()
        await results.close()
        await redis.close()
        await blocking { [pool, children] in
            pool.shutdown()
            children?.shutdown()
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
