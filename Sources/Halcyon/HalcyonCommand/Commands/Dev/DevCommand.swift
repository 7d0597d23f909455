import Arguments
import Glibc
import HalcyonCluster
import HalcyonGateway
import HalcyonSources
import HalcyonTraces
import HalcyonWire
import HalcyonWorker
import JSON
import Kafka
import Processes
import Redis
import Telemetry
import Values

/// `halcyon dev`: a whole cluster in one process group, for development.
enum DevCommand: Subcommand {
    private static let json = Parameter.flag(
        "json", help: "Print the addresses as one line of JSON when ready, and then one for each job of --demo.")
    private static let demo = Parameter.flag(
        "demo", help: "Submit sample jobs when ready, and write their results into a folder.")
    private static let output = Parameter<String?>.option(
        "output", .folder, as: "DIR", help: "The folder of --demo. Unless given, halcyon-demo.")

    static let command = Command(
        "dev", summary: "Run a whole cluster on this machine, with nothing to set up.",
        discussion: """
            Starts an embedded Kafka broker (librdkafka's mock cluster: kcat and other clients built on librdkafka can connect, \
            kafka-python and Apache's Java client from version 4 on cannot; it keeps the newest 5 MB of each partition, in memory), a private redis-server, a worker and a gateway, all on 127.0.0.1, and prints their addresses. Images may be loaded from \
            loopback addresses here. Ctrl-C stops all of it and leaves nothing behind.
            """, parameters: [json, demo, output],
        examples: [
            .init("halcyon dev", "Start it; then put jobs on the topic halcyon.jobs."),
            .init("halcyon dev --demo", "See it work: a photograph in nine ways, in the folder halcyon-demo."),
            .init(
                "halcyon submit https://… --width 400 --wait", "In another terminal, with the two variables it printed."
            ),
            .init("halcyon dev --json | tee dev.json", "For scripts: the line comes when all is ready."),
        ])

    static let handlesSignals = true

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let configuration = try Configuration(arguments)
        guard arguments[demo] || arguments[output] == nil else {
            throw InputError("--output is for the results of --demo", of: arguments)
        }
        guard configuration.options.delivery == .atLeastOnce else {
            throw ConfigurationError(
                "delivery: the embedded broker has no transactions; exactly-once needs Apache Kafka and `halcyon worker`"
            )
        }
        configuration.openFormats()
        let writer = configuration.logWriter()
        let log = Log(level: configuration.options.logLevel, sink: writer)
        defer { writer.shutdown() }
        // Whatever comes first: somebody stops it, or Redis is gone, which is a reason to say.
        let (ends, end) = AsyncStream<String?>.makeStream()
        StopRequest.listen { end.yield(nil) }

        let demo = arguments[demo] ? try await Demo(in: arguments[output] ?? "halcyon-demo") : nil
        let topics = configuration.topics
        let kafka = try MockCluster(
            events: ClientEvents(log: { [log] level, _, message in
                // Such as a client that asks in a version which the broker does not know.
                if level <= .error { log.warning("embedded broker", ["reason": message]) }
            }))
        for topic in topics.all { try kafka.createTopic(topic, partitions: 8) }
        let redis = try await PrivateRedis.start()

        var options = try configuration.worker()
        // The mock looks for new records only when this time is over.
        let properties = ["fetch.wait.max.ms": "10"].merging(configuration.options.kafkaProperties) { $1 }
        options.kafka = KafkaProperties(brokers: kafka.bootstrapServers, properties: properties)
        options.redis = RedisEndpoint(loopbackPort: redis.port)
        options.sources.policy = AddressPolicy(
            allow: configuration.options.allow + ["127.0.0.0/8", "::1"],
            deny: configuration.options.deny)
        if let demo { options.sources.fileRoots.append(demo.folder) }
        let metrics = Metrics.ofProgram()
        metrics.readVips()
        let tracing = configuration.traces.map { Tracing($0, log: log, metrics: metrics) }
        let worker = try await Worker.start(options, log: log, metrics: metrics, tracer: tracing?.tracer) {
            writer.shutdown()
            _exit(ExitCode.stuck.rawValue)
        }
        let companions = try await Companions.start(
            beside: worker, options, configuration, log: log, metrics: metrics)
        let gateway = try await startGateway(
            configuration, beside: options, log: log, metrics: metrics, tracer: tracing?.tracer)
        await worker.ready()
        await companions.notifier.ready()
        await gateway.ready()
        let addresses = Addresses(
            kafka: kafka.bootstrapServers, redis: "127.0.0.1:\(redis.port)",
            gateway: "http://127.0.0.1:\(gateway.ports[0])")
        announce(addresses, topics, asJSON: arguments[json])
        let access = KafkaAccess(properties: options.kafka, topics: topics, brokers: kafka.bootstrapServers)
        let (endpoint, reader, asJSON) = (options.redis, configuration.jobReader, arguments[json])
        let showing = demo.map { demo in Task { await show(demo, access, endpoint, reader, asJSON: asJSON) } }

        Task { end.yield("redis-server ended by itself: \(await redis.process.exit())") }
        let reason = await ends.first { _ in true } ?? nil
        if let reason { log.error("\(reason)") }
        showing?.cancel()
        let isShown = await showing?.value ?? true
        async let served: Void = gateway.drain(grace: options.grace)
        _ = await WorkerCommand.drain(worker, companions, tracing, grace: options.grace, log)
        await served
        await redis.process.stop()
        await kafka.stop()
        return reason == nil && isShown ? .done : .failed
    }

    /// - Returns: false when it went wrong; what was interrupted has not.
    private static func show(
        _ demo: Demo, _ kafka: KafkaAccess, _ redis: RedisEndpoint, _ reader: JobReader, asJSON: Bool
    ) async -> Bool {
        do {
            let code = try await demo.run(kafka, redis, reader, asJSON: asJSON)
            if code != .interrupted, !asJSON {
                Console.print("The results are in \(demo.folder). Ctrl-C stops all of it.")
            }
            return code != .failed
        } catch {
            guard !Task.isCancelled else { return true }
            Console.complain("--demo: \(error)")
            return false
        }
    }

    /// A gateway on the cluster of `worker`. Where `gateway.listen` is not set and its port is taken, as by another `halcyon dev`, it has a
    /// free one.
    private static func startGateway(
        _ configuration: Configuration, beside worker: WorkerOptions, log: Log, metrics: Metrics, tracer: Tracer?
    ) async throws -> Gateway {
        var options = try configuration.gateway()
        (options.kafka, options.redis) = (worker.kafka, worker.redis)
        let places = configuration.options.gatewayListen
        do {
            return try await GatewayCommand.start(options, on: places, log: log, metrics: metrics, tracer: tracer)
        } catch let error as ConfigurationError {
            guard configuration.settings.origin(of: \.gatewayListen) == .builtIn else { throw error }
            return try await GatewayCommand.start(
                options, on: places.map { HostPort(host: $0.host, port: 0) }, log: log, metrics: metrics,
                tracer: tracer)
        }
    }

    private struct Addresses {
        let kafka: String
        let redis: String
        let gateway: String
    }

    private static func announce(_ addresses: Addresses, _ topics: Topics, asJSON: Bool) {
        if asJSON {
            Console.printObject { writer in
                writer.member("kafka", addresses.kafka)
                writer.member("redis", addresses.redis)
                writer.member("gateway", addresses.gateway)
            }
        } else {
            Console.print(
                """
                Halcyon is ready.
                  Kafka     \(addresses.kafka)   jobs on \(topics.jobs(.normal)), events on \(topics.events)
                  Redis     \(addresses.redis)
                  Gateway   \(addresses.gateway)   POST /v1/jobs, GET /v1/render?source=…&width=400, GET /v1/events
                  Dashboard \(addresses.gateway)/
                In another terminal:
                  export HALCYON_KAFKA_BROKERS=\(addresses.kafka) HALCYON_REDIS_URL=redis://\(addresses.redis)
                  halcyon submit https://… --width 400 --height 300 --wait --output images
                Ctrl-C stops all of it.
                """)
        }
    }
}
