import Concurrency
import HTTPServer
import HalcyonCluster
import HalcyonCoding
import HalcyonCoordination
import HalcyonResults
import HalcyonTelemetry
import Kafka
import Redis
import Telemetry

/// An HTTP API for jobs, images, events and the cluster, for clients that do not use Kafka.
///
/// A gateway is stateless: any number of gateways can run behind a load balancer, and accepted jobs are stored in
/// Kafka. ``shutdown(gracePeriod:)`` must be called at the end.
public final class Gateway: Sendable {
    private let servers: [HTTPServer]
    /// All routes except the probes.
    let routes: [Route]
    private let producer: Producer
    private let redis: RedisClient
    private let feed: EventFeed
    private let states: EventRelay
    private let overview: ClusterOverview
    private let store: ResultStore?
    private let presets: PresetUpdates
    /// The endpoints for operators, to serve them on an address of their own.
    public let probes: Probes

    private init(
        _ servers: [HTTPServer], _ routes: [Route], _ producer: Producer, _ redis: RedisClient, _ feed: EventFeed,
        _ states: EventRelay, _ overview: ClusterOverview, _ store: ResultStore?, _ presets: PresetUpdates,
        _ probes: Probes
    ) {
        self.probes = probes
        self.store = store
        self.presets = presets
        self.servers = servers
        self.routes = routes
        self.producer = producer
        self.redis = redis
        self.feed = feed
        self.states = states
        self.overview = overview
    }

    /// The ports that the gateway listens on, in the order of the addresses.
    public var ports: [UInt16] { servers.map(\.port) }

    /// Waits until the gateway reads events, so that requests which wait for jobs see their ends.
    public func ready() async { await feed.ready() }

    /// Starts a gateway. If Kafka or Redis is down it waits for them, and `/readyz` reports that.
    /// - Parameters:
    ///   - addresses: IP addresses of this machine and ports; 0 selects a free port.
    ///   - tracer: records the spans of requests that submit jobs. The caller closes its exporter after the gateway
    ///     has been drained.
    ///   - onEnd: A callback for a fatal error of the producer, after which no job can be accepted any more. The caller
    ///     is expected to drain the gateway.
    /// - Throws: `HTTPServerError` if it cannot listen on an address; `StorageError` if the result store cannot be
    ///   used; ``KafkaError`` that names a property which librdkafka rejects; ``OpenGatewayError`` if a gateway without
    ///   keys would be reachable from other machines and `isOpen` is not set.
    public static func start(
        _ options: GatewayOptions, on addresses: [(host: String, port: UInt16)], log: Log, metrics: Metrics,
        tracer: Tracer? = nil, onEnd: @escaping @Sendable (KafkaError) -> Void = { _ in }
    ) async throws -> Gateway {
        var access = options.access
        access.hasCompatibleKeys = options.urls.hasKeys
        for address in addresses where !access.allowsListening(on: address.host) {
            throw OpenGatewayError(host: address.host)
        }
        let producer = try Producer(
            properties: options.kafka.producer(within: options.jobs.sendTime), onFatal: onEnd)
        let store: ResultStore?
        do {
            store = try await blocking {
                try options.resultStore.map { try ResultStore.open($0, log: log, metrics: metrics) }
            }
        } catch {
            await producer.close()
            throw error
        }
        store?.start()
        let redis = RedisClient(
            options.redis,
            onStateChange: { [gauge = ConnectionMetrics.redis(metrics)] in gauge.set($0.isServing ? 1 : 0) })
        let presets = PresetUpdates(options, redis, log: log, metrics: metrics)
        let reader = options.reader.withPresets(presets.catalog)
        let memory = JobStateStore(redis: redis, lifetime: options.jobs.memory, log: log)
        let states = EventRelay(options.states, to: options.redis, log: log, metrics: metrics, memory.commands)
        let imageCache = ImageMemoryCache(options.imageCache)
        let feed = EventFeed.start(
            options.events, topics: options.topics, properties: options.kafka.reader, log: log, metrics: metrics
        ) { imageCache.invalidate($0, at: .now) }
        metrics.observable(
            .gauge, "halcyon_gateway_consuming", help: "1 if this gateway is reading the events topic, otherwise 0."
        ) { [weak feed] in feed?.isFollowing == true ? 1 : 0 }
        let deadLetters = DeadLetterService(
            DeadLetterReader(options.topics, properties: options.kafka.reader, reader: reader),
            options: options.dead, log: log)
        let probes = Probes(
            metrics: metrics, health: { [] },
            readiness: {
                feed.isFollowing ? [] : ["events are not read: Kafka is down, or the events topic does not exist"]
            })
        let overview = ClusterOverview(options, redis: redis, deadLetters: deadLetters, log: log)
        let gateway: Gateway
        do {
            try await states.start()
            let results = ResultCache(
                redis, budget: options.budget, errors: ToleratedErrors(of: "budget", log: log, metrics: metrics))
            let submitter = JobSubmitter(
                producer: producer, topics: options.topics, reader: reader, presets: presets.catalog, memory: memory,
                batches: BatchStore(redis, options.batches), times: (options.limits.requestTime, options.jobs.sendTime))
            let control = ControlPublisher(producer, topics: options.topics)
            let headers = CommonHeaders(crossOrigin: CrossOrigin(origins: access.origins))
            let images = ImageRoutes(
                results: results, store: store, redirects: options.redirectsToStore, imageCache: imageCache,
                headers: headers, cacheTags: options.cacheTags, log: log)
            let jobs = JobRoutes(
                submitter: submitter, memory: memory, feed: feed, control: control, options: options.jobs)
            let batches = BatchRoutes(
                submitter: submitter, failed: FailedJobReader(options.topics, properties: options.kafka.reader),
                mostJobs: options.jobs.linesAtOnce, maximumBytes: options.limits.bodyBytes)
            let render = RenderRoutes(
                submitter: submitter, feed: feed, images: images, results: results, control: control,
                options: options.render)
            let purge = PurgeRoutes(
                purging: PurgeService(redis, store, producer, topics: options.topics), reader: options.reader, log: log)
            let controlRoutes = ControlRoutes(
                control: control, pauses: PauseService(PauseStore(redis, topics: options.topics), control),
                lister: JobLister(redis, control), reader: options.reader, log: log)
            let presetRoutes = PresetRoutes(
                presets: presets.catalog, service: presets.service(control), reader: reader, log: log)
            let dead = DeadLetterRoutes(deadLetters: deadLetters, producer: producer)
            let streamLimiter = StreamLimiter(options.events.streams, feed.metrics)
            let cluster = ClusterRoutes(overview: overview, events: options.events, streamLimiter: streamLimiter)
            let history = HistoryRoutes(
                store: feed.history, messages: FailedJobReader(options.topics, properties: options.kafka.reader))
            let router = Router(
                routes: images.all + jobs.all + batches.all + render.all + [.events(feed, streamLimiter)] + purge.all
                    + controlRoutes.all + presetRoutes.all + dead.all + cluster.all + history.all + [
                        .access(documentation: options.documentation, servesMetrics: options.servesMetrics)
                    ]
                    + DocumentRoutes.all + DashboardRoutes.all + SampleRoutes.all(options.samples)
                    + CompatibleURLRoutes(render: render, options: options.urls).all,
                authenticator: Authenticator(access), log: log, metrics: metrics, tracer: tracer)
            let chain = MiddlewareChain(
                probes: options.servesMetrics ? probes : probes.withoutMetrics, router: router, headers: headers,
                hosts: HostRule(access))
            var limits = options.limits
            limits.responseHeadBytes = options.cacheTags.headBytes
            let servers = try await listen(on: addresses, limits, headers, log) { chain.reply(to: $0) }
            gateway = Gateway(servers, router.routes, producer, redis, feed, states, overview, store, presets, probes)
        } catch {
            await Gateway([], [], producer, redis, feed, states, overview, store, presets, probes)
                .shutdown(gracePeriod: .zero)
            throw error
        }
        return gateway
    }

    /// Listens on all addresses, or on none if one fails.
    private static func listen(
        on addresses: [(host: String, port: UInt16)], _ limits: HTTPServer.Limits, _ headers: CommonHeaders, _ log: Log,
        _ replier: @escaping HTTPServer.RequestHandler
    ) async throws(HTTPServerError) -> [HTTPServer] {
        var settings = HTTPServer.Settings()
        settings.limits = limits
        // Known methods without a route: they are rejected with 405 and the allowed methods instead of 501.
        settings.methods.formUnion(["QUERY", "TRACE"])
        settings.refusal = { refusal in
            var response = Problem(refused: refusal).response
            headers.add(to: &response, for: nil)
            return response
        }
        let events = ServerEventLog(log, limitHint: "raise gateway.connections or gateway.connectionsPerAddress")
        settings.note = { events.log($0) }
        var servers: [HTTPServer] = []
        do throws(HTTPServerError) {
            for address in addresses {
                servers.append(try .start(on: address.host, port: address.port, settings, syncHandler: replier))
            }
        } catch {
            for server in servers { await server.shutdown(gracePeriod: .zero) }
            throw error
        }
        return servers
    }

    /// Stops accepting requests, waits up to `grace` for those in flight, and closes all connections.
    public func shutdown(gracePeriod grace: Duration) async {
        feed.endStreams()
        overview.ended.signal()
        await withTaskGroup(of: Void.self) { group in
            for server in servers { group.addTask { await server.shutdown(gracePeriod: grace) } }
        }
        await feed.close()
        await overview.close()
        await presets.close()
        await states.shutdown(gracePeriod: grace)
        await producer.close(flushingFor: grace)
        await store?.close(within: .seconds(5))
        await redis.close()
    }
}

/// The options of a gateway. `halcyon config` documents the settings of the same names.
public struct GatewayOptions: Sendable {
    /// The topics of the cluster.
    public var topics: Topics
    /// The Kafka connection properties.
    public var kafka: KafkaProperties
    /// The consumer group of the workers. The name of the gateways' group starts with it.
    public var group = "halcyon-workers"
    /// The Redis server that stores the results.
    public var redis: RedisEndpoint
    /// The persistent result store; nil if results live in Redis only.
    public var resultStore: ResultStoreOptions?
    /// True if `GET /v1/images/{key}` redirects to the public URL of a result in the store.
    public var redirectsToStore = false
    /// The decoder of jobs.
    public var reader = JobDecoder()
    /// The presets of the settings, the same as those of the workers.
    public var presets: [Preset] = []
    /// Authentication, authorization, rate limits and CORS.
    public var access = AccessOptions()
    /// The in-memory cache of images.
    public var imageCache = ImageMemoryCacheOptions()
    /// The headers by which shared caches purge images.
    public var cacheTags = CacheTagOptions()
    /// The quota of each tenant, the same as that of the workers. If it is set, renderings count as uses of results.
    public var budget = Budget()
    /// Settings for submitting jobs.
    public var jobs = JobsOptions()
    /// The options of batches, the same as those of the workers.
    public var batches = BatchOptions()
    /// Settings for rendering images on request.
    public var render = RenderOptions()
    /// The URL grammars of other image servers that are served.
    public var urls = CompatibleURLOptions()
    /// False if metrics are served only on an address of their own (``Gateway/probes``).
    public var servesMetrics = true
    /// JPEG files by name that are served below `/samples`, for `halcyon dev`.
    public var samples: [String: [UInt8]] = [:]
    /// Settings for listing and replaying dead letters.
    public var dead = DeadLetterOptions()
    /// Settings of the cluster overview.
    public var overview = OverviewOptions()
    /// The URL of the documentation that the dashboard links to; empty for none.
    public var documentation = ""
    /// Settings of the event streams.
    public var events = EventOptions()
    /// The limits of the HTTP server.
    public var limits = HTTPServer.Limits()

    /// Creates options for the given servers.
    public init(topics: Topics = Topics(), kafka: KafkaProperties, redis: RedisEndpoint) {
        self.topics = topics
        self.kafka = kafka
        self.redis = redis
    }
}

extension GatewayOptions {
    /// The options of the reader of control messages. Presets are loaded at the start, so older messages are skipped.
    var control: ControlReader.Options {
        ControlReader.Options(topics: topics, properties: kafka.control, reader: reader, memory: 60)
    }

    /// The options of the relay that updates job states, as a member of the gateways' group.
    var states: EventRelay.Options {
        EventRelay.Options(
            topic: topics.events, properties: kafka.bookkeeper(group: "\(group)-gateways"),
            consumer: JobConsumer.Options(), of: "job_states", maximumAge: jobs.memory)
    }
}
