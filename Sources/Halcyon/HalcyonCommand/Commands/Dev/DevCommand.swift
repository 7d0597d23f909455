import Formats
import Glibc
import HalcyonCluster
import HalcyonGateway
import HalcyonModel
import HalcyonSources
import HalcyonTelemetry
import HalcyonWire
import HalcyonWorker
import JSON
import Kafka
import Processes
import ProgramSettings
import Redis
import SamplePhotographs
import Telemetry

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
        let grace = options.grace
        async let served: Void = gateway.drain(grace: grace)
        _ = await WorkerCommand.drain(worker, companions, tracing, grace: grace, log)
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

/// What `halcyon dev --demo` shows: one photograph, placed and processed in several ways, and an avatar.
struct Demo: Sendable {
    /// Where the photograph is and the results go; an absolute path. Jobs may load files from there.
    let folder: String

    /// Makes the folder, with the photograph in it.
    /// - Throws: ``FileError``.
    init(in folder: String) async throws {
        try await Files.makeFolder(folder)
        try await Files.write(SamplePhotographs.chelsea, to: "\(folder)/chelsea.jpg")
        guard let path = realpath(folder, nil) else { throw FileError("cannot find \(folder)", errno) }
        defer { free(path) }
        self.folder = String(cString: path)
    }

    /// Submits the jobs, waits for them, prints a line for each image and writes them into the folder.
    func run(_ kafka: KafkaAccess, _ redis: RedisEndpoint, _ reader: JobReader, asJSON: Bool) async throws -> ExitCode {
        let jobs = try jobs(reader)
        let submission = Submission(batch: Batch(jobs), kafka: kafka, timeout: nil, asJSON: asJSON)
        return try await redis.withClient { client in
            try await submission.wait(
                writingTo: Gallery(folder: folder, results: ResultTier(client), stems: jobs.map(\.job.id)))
        }
    }

    private func jobs(_ reader: JobReader) throws -> [PreparedJob] {
        let photograph = #""source":"file://\#(PercentEncoding.encode("\(folder)/chelsea.jpg", keeping: "/"))""#
        let display = #""width":240,"height":180"#
        let fields = [
            ("fill", #"\#(photograph),\#(display)"#),
            ("fit", #"\#(photograph),\#(display),"contentMode":"scaleAspectFit","background":"white""#),
            ("stretch", #"\#(photograph),\#(display),"contentMode":"scaleToFill""#),
            ("center", #"\#(photograph),\#(display),"contentMode":"center""#),
            ("crop", #"\#(photograph),\#(display),"cropRect":{"x":0.25,"y":0.1,"width":0.5,"height":0.5}"#),
            ("round", #"\#(photograph),"width":180,"height":180,"processors":[{"roundCorner":{"widthFraction":0.5}}]"#),
            ("gray", #"\#(photograph),\#(display),"processors":["blackWhite"]"#),
            ("small", #"\#(photograph),"format":"webp","variants":[{"width":320},{"width":160},{"width":80}]"#),
            ("avatar", ##""source":{"initials":"HC","background":"#1d6b4f"},"width":180,"height":180,"format":"png""##),
        ]
        return try fields.map { id, fields in
            let draft = try JobDraft(json: Array(#"{"id":"\#(id)",\#(fields)}"#.utf8), maximumSize: reader.maximumBytes)
            return try PreparedJob(draft, fallbackID: id, by: reader)
        }
    }
}

/// A redis-server of this process's own: in memory, on loopback, gone when this process is, however it ends.
struct PrivateRedis: Sendable {
    let port: UInt16
    let process: ChildProcess

    /// Starts it and waits until it says that it is ready.
    /// - Throws: ``Trouble`` when there is no redis-server, or it does not come up.
    static func start() async throws -> PrivateRedis {
        guard findExecutable("redis-server") != nil else {
            throw Trouble("no redis-server in PATH; `make deps` installs it (Debian: apt-get install redis-server)")
        }
        // A port that was free may be taken a moment later: then the server ends, and another port is tried.
        for _ in 0..<10 {
            let port = LoopbackPort.free()
            let process = try await ChildProcess.start(
                "redis-server",
                [
                    "--port", "\(port)", "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", "/",
                    "--maxmemory", "512mb", "--maxmemory-policy", "volatile-ttl",
                ], readyWhenItSays: "Ready to accept connections")
            if let process { return PrivateRedis(port: port, process: process) }
        }
        throw Trouble("redis-server ends as soon as it is started; run it by hand to see why")
    }
}
