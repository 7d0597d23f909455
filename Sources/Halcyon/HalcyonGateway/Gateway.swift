import HTTPServer
import HalcyonCluster
import HalcyonTelemetry
import Kafka
import Redis
import Telemetry

/// The cluster for everyone who does not speak Kafka: jobs, images and events over HTTP.
///
/// It keeps nothing that another gateway would need: any number of them may stand behind a load balancer, and what one has taken it has given
/// to Kafka. ``drain(grace:)`` must be called in the end.
public final class Gateway: Sendable {
    private let servers: [HTTPServer]
    /// What can be asked for, probes aside.
    let routes: [Route]
    private let producer: Producer
    private let redis: RedisClient
    private let feed: EventFeed
    private let states: EventRelay
    private let overview: ClusterOverview

    private init(
        _ servers: [HTTPServer], _ routes: [Route], _ producer: Producer, _ redis: RedisClient, _ feed: EventFeed,
        _ states: EventRelay, _ overview: ClusterOverview
    ) {
        self.servers = servers
        self.routes = routes
        self.producer = producer
        self.redis = redis
        self.feed = feed
        self.states = states
        self.overview = overview
    }

    /// Where it listens, in the order of the addresses.
    public var ports: [UInt16] { servers.map(\.port) }

    /// Returns when it follows events: then who waits for a job hears of its end.
    public func ready() async { await feed.ready() }

    /// Starts one. Servers that are away are waited for: that is no error, and `/readyz` says so meanwhile.
    /// - Parameters:
    ///   - addresses: IP addresses of this machine, and ports; 0 for a free one.
    ///   - tracer: takes the spans of requests that put jobs on their way. It stays its maker's, who closes its exporter when the gateway has been drained.
    /// - Throws: `HTTPServerError` when it cannot listen there; ``KafkaError`` that names a property which librdkafka refuses;
    ///   ``OpenGatewayError`` when everybody could do everything from another machine, which nobody has said to be meant.
    public static func start(
        _ options: GatewayOptions, on addresses: [(host: String, port: UInt16)], log: Log, metrics: Metrics,
        tracer: Tracer? = nil
    ) async throws -> Gateway {
        for address in addresses where !options.access.allowsListening(on: address.host) {
            throw OpenGatewayError(host: address.host)
        }
        let producer = try Producer(properties: options.kafka.producer(within: options.jobs.sendTime))
        let redis = RedisClient(
            options.redis,
            onStateChange: { [gauge = ConnectionMetrics.redis(metrics)] in gauge.set($0.isServing ? 1 : 0) })
        let memory = JobMemory(redis: redis, lifetime: options.jobs.memory, log: log)
        let states = EventRelay(options.states, to: options.redis, log: log, metrics: metrics, memory.commands)
        let shelf = ImageShelf(options.shelf)
        let feed = EventFeed.start(
            options.events, topics: options.topics, properties: options.kafka.reader, log: log, metrics: metrics
        ) { shelf.forget($0, at: .now) }
        metrics.reading(
            .gauge, "halcyon_gateway_following", help: "1 while this gateway follows the topic of events, else 0."
        ) { [weak feed] in feed?.isFollowing == true ? 1 : 0 }
        let letters = DeadDesk(
            DeadTopic(options.topics, properties: options.kafka.reader, reader: options.reader),
            options: options.dead, log: log)
        let overview = ClusterOverview(options, redis: redis, desk: letters, log: log)
        let gateway: Gateway
        do {
            try await states.start()
            let results = ResultTier(
                redis, budget: options.budget, errors: ToleratedErrors(of: "budget", log: log, metrics: metrics))
            let desk = JobDesk(
                producer: producer, topics: options.topics, reader: options.reader, memory: memory,
                times: (options.limits.requestTime, options.jobs.sendTime))
            let control = ControlPublisher(producer, topics: options.topics)
            let headers = CommonHeaders(crossOrigin: CrossOrigin(origins: options.access.origins))
            let images = ImageRoutes(results: results, shelf: shelf, headers: headers, log: log)
            let jobs = JobRoutes(desk: desk, memory: memory, feed: feed, control: control, options: options.jobs)
            let render = RenderRoutes(
                desk: desk, feed: feed, images: images, results: results, control: control, options: options.render)
            let purge = PurgeRoutes(
                purging: Purging(redis, producer, topics: options.topics), reader: options.reader, log: log)
            let dead = DeadRoutes(desk: letters, producer: producer)
            let places = StreamPlaces(options.events.streams, feed.metrics)
            let cluster = ClusterRoutes(overview: overview, events: options.events, places: places)
            let probes = Probes(
                metrics: metrics, health: { [] },
                readiness: { feed.isFollowing ? [] : ["events are not followed: Kafka is away, or has no such topic"] })
            let router = Router(
                routes: images.all + jobs.all + render.all + [.events(feed, places)] + purge.all + dead.all
                    + cluster.all
                    + DocumentRoutes.all + DashboardRoutes.all,
                gatekeeper: Gatekeeper(options.access), log: log, metrics: metrics, tracer: tracer)
            let entrance = Entrance(
                probes: probes, router: router, headers: headers, hosts: HostRule(options.access))
            let servers = try await listen(on: addresses, options.limits, log) { entrance.reply(to: $0) }
            gateway = Gateway(servers, router.routes, producer, redis, feed, states, overview)
        } catch {
            await Gateway([], [], producer, redis, feed, states, overview).drain(grace: .zero)
            throw error
        }
        return gateway
    }

    /// All of them, or none.
    private static func listen(
        on addresses: [(host: String, port: UInt16)], _ limits: HTTPServer.Limits, _ log: Log,
        _ replier: @escaping HTTPServer.Replier
    ) async throws(HTTPServerError) -> [HTTPServer] {
        var settings = HTTPServer.Settings()
        settings.limits = limits
        // Known, and of no path: they are refused with what the path has (405), not as what nobody knows (501).
        settings.methods.formUnion(["QUERY", "TRACE"])
        settings.refusal = { refusal in
            var response = Problem(refused: refusal).response
            SecurityHeaders.add(to: &response)
            return response
        }
        settings.note = { log.take($0) }
        var servers: [HTTPServer] = []
        do throws(HTTPServerError) {
            for address in addresses {
                servers.append(try .start(on: address.host, port: address.port, settings, replying: replier))
            }
        } catch {
            for server in servers { await server.stop(within: .zero) }
            throw error
        }
        return servers
    }

    /// Takes no more requests, lets those under way end within `grace`, and closes everything.
    public func drain(grace: Duration) async {
        feed.endStreams()
        overview.ended.open()
        await withTaskGroup(of: Void.self) { group in
            for server in servers { group.addTask { await server.stop(within: grace) } }
        }
        await feed.close()
        await overview.close()
        await states.drain(grace: grace)
        await producer.close(flushingFor: grace)
        await redis.close()
    }
}
