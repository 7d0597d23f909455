import Arguments
import HalcyonCluster
import HalcyonSources
import HalcyonWorker
import JSON
import Kafka
import Processes
import Redis
import Settings
import Telemetry

/// `halcyon dev`: a whole cluster in one process group, for development.
enum DevCommand: Subcommand {
    private static let json = Parameter.flag("json", help: "Print the addresses as one line of JSON when ready.")

    static let command = Command(
        "dev", summary: "Run a whole cluster on this machine, with nothing to set up.",
        discussion: """
            Starts an embedded Kafka broker (librdkafka's mock cluster: any Kafka client can connect; it keeps the newest \
            5 MB of each partition, in memory), a private redis-server and a worker, all on 127.0.0.1, and prints their addresses. Images may be loaded from \
            loopback addresses here. Ctrl-C stops all of it and leaves nothing behind.
            """, parameters: [json],
        examples: [
            .init("halcyon dev", "Start it; then put jobs on the topic halcyon.jobs."),
            .init(
                "halcyon submit https://… --width 400 --wait", "In another terminal, with the two variables it printed."
            ),
            .init("halcyon dev --json | tee dev.json", "For scripts: the line comes when all is ready."),
        ])

    static let handlesSignals = true

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let configuration = try Configuration(arguments)
        configuration.openFormats()
        let writer = configuration.logWriter()
        let log = Log(level: configuration.settings[Keys.logLevel], sink: writer)
        defer { writer.shutdown() }
        // Whatever comes first: somebody stops it, or Redis is gone, which is a reason to say.
        let (ends, end) = AsyncStream<String?>.makeStream()
        StopRequest.listen { end.yield(nil) }

        let topics = configuration.topics
        let kafka = try MockCluster()
        for topic in topics.all { try kafka.createTopic(topic, partitions: 8) }
        let redis = try await PrivateRedis.start()

        var options = try configuration.worker()
        // The mock looks for new records only when this time is over.
        let properties = ["fetch.wait.max.ms": "10"].merging(configuration.settings[Keys.kafkaProperties]) { $1 }
        options.kafka = KafkaProperties(brokers: kafka.bootstrapServers, properties: properties)
        options.redis = RedisEndpoint(loopbackPort: redis.port)
        options.sources.policy = AddressPolicy(
            allow: configuration.settings[Keys.allow] + ["127.0.0.0/8", "::1"], deny: configuration.settings[Keys.deny])
        let worker = try await Worker.start(options, log: log, metrics: Metrics())
        await worker.ready()
        announce(kafka: kafka.bootstrapServers, redis: "127.0.0.1:\(redis.port)", topics, asJSON: arguments[json])

        Task { end.yield("redis-server ended by itself: \(await redis.process.exit())") }
        let reason = await ends.first { _ in true } ?? nil
        if let reason { log.error("\(reason)") }
        _ = await WorkerCommand.drain(worker, grace: options.grace, log)
        await redis.process.stop()
        await kafka.stop()
        return reason == nil ? .done : .failed
    }

    private static func announce(kafka: String, redis: String, _ topics: Topics, asJSON: Bool) {
        if asJSON {
            var writer = JSONWriter()
            writer.object { writer in
                writer.member("kafka", kafka)
                writer.member("redis", redis)
            }
            Console.print(json: writer.bytes)
        } else {
            Console.print(
                """
                Halcyon is ready.
                  Kafka   \(kafka)   jobs on \(topics.jobs(.normal)), events on \(topics.events)
                  Redis   \(redis)
                In another terminal:
                  export HALCYON_KAFKA_BROKERS=\(kafka) HALCYON_REDIS_URL=redis://\(redis)
                  halcyon submit https://… --width 400 --height 300 --wait --output images
                Ctrl-C stops all of it.
                """)
        }
    }
}
