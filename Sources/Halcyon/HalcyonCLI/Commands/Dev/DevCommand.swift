import Formats
import Glibc
import HalcyonCluster
import HalcyonCoding
import HalcyonGateway
import HalcyonModel
import HalcyonSources
import HalcyonTelemetry
import HalcyonWorker
import JSON
import Kafka
import ProgramSettings
import Redis
import Subprocess
import Telemetry

/// `halcyon dev`: runs a complete cluster in one process group, for development.
enum DevCommand: Subcommand {
    private static let json = Parameter.flag(
        "json", help: "Print the addresses as one line of JSON when ready, followed by a line for each job of --demo.")
    private static let environment = Parameter<String?>.option(
        "environment", .file, as: "FILE",
        help: """
            Write the variables for other commands to this file when ready, as a shell script. It is removed at the end.
            """)
    private static let demo = Parameter.flag(
        "demo", help: "Submit sample jobs when ready, and write their results to a folder.")
    private static let output = Parameter<String?>.option(
        "output", .folder, as: "DIR", help: "The folder for the results of --demo. Default: halcyon-demo.")

    static let command = Command(
        "dev", summary: "Run a complete cluster on this machine, without any setup.",
        discussion: """
            Starts an embedded Kafka broker, a private redis-server, a worker and a gateway on 127.0.0.1, and prints \
            their addresses. Images can be loaded from loopback addresses. The gateway serves sample photographs: \
            \(EmbeddedFiles.photographs.keys.sorted().map { "/samples/\($0)" }.joined(separator: ", ")). Ctrl-C stops \
            everything and leaves no data behind.

            The broker is the mock cluster of librdkafka. It stores the newest 5 MB of each partition in memory. kcat \
            and other clients based on librdkafka can connect, but kafka-python and Apache's Java client from version \
            4 on cannot.
            """, parameters: [json, environment, demo, output],
        examples: [
            .init("halcyon dev", "Start a cluster. Then send jobs to the topic halcyon.jobs."),
            .init("halcyon dev --demo", "Render a photograph in nine ways, to the folder halcyon-demo."),
            .init(
                "halcyon submit http://127.0.0.1:8080/samples/chelsea.jpg --width 400 --output images",
                "Submit a job from another terminal, with the printed variables set."),
            .init(
                "halcyon dev --environment dev.env",
                "Write the variables to a file. In another terminal, `. ./dev.env` sets them."),
            .init(
                "halcyon dev --json | tee dev.json",
                "Start a cluster from a script. The line is printed when it is ready."),
        ])

    static let connection = Connection.none
    static let handlesSignals = true

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let configuration = try Configuration(arguments)
        guard arguments[demo] || arguments[output] == nil else {
            throw InputError("--output requires --demo", of: arguments)
        }
        guard configuration.options.delivery == .atLeastOnce else {
            throw ConfigurationError(
                "delivery: the embedded broker has no transactions; exactly-once needs Apache Kafka and "
                    + "`halcyon worker`"
            )
        }
        // Wrong settings are reported before any server starts.
        var options = try configuration.worker()
        let gatewayOptions = try configuration.gateway()
        try configuration.prepareImaging()
        let writer = configuration.logWriter()
        let log = Log(level: configuration.options.logLevel, sink: writer)
        defer { writer.shutdown() }
        // The cluster ends on a signal, or when one of its parts fails, which is the element of the stream.
        let (ends, end) = AsyncStream<String?>.makeStream()
        StopRequest.listen { end.yield(nil) }
        let onEnd: @Sendable (KafkaError) -> Void = { end.yield("shutting down after a fatal error: \($0)") }

        let demo = arguments[demo] ? try await Demo(in: arguments[output] ?? "halcyon-demo") : nil
        let topics = configuration.topics
        let kafka = try MockCluster(
            events: ClientCallbacks(log: { [log] level, _, message in
                // For example, a client that uses a protocol version unknown to the broker.
                if level <= .error { log.warning("embedded broker reported an error", ["reason": message]) }
            }))
        try await kafka.createTopics(topics.all, partitions: 8)
        let redis = try await PrivateRedis.start()

        // The mock cluster checks for new records only after this time.
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
        let onStuck: @Sendable () -> Void = {
            writer.shutdown()
            _exit(ExitCode.stuck.rawValue)
        }
        let worker = try await Worker.start(
            options, log: log, metrics: metrics, tracer: tracing?.tracer, onStuck: onStuck, onEnd: onEnd)
        let companions = try await BackgroundServices.start(
            beside: worker, options, configuration, log: log, metrics: metrics, onEnd: onEnd)
        let gateway = try await startGateway(
            gatewayOptions, configuration, beside: options, log: log, metrics: metrics, tracer: tracing?.tracer,
            onEnd: onEnd)
        await worker.ready()
        await companions.notifier.ready()
        await gateway.ready()
        let addresses = Addresses(
            kafka: kafka.bootstrapServers, redis: "127.0.0.1:\(redis.port)",
            gateway: "http://127.0.0.1:\(gateway.ports[0])")
        if let path = arguments[environment] { try await Files.write(Array("\(addresses.exports)\n".utf8), to: path) }
        defer { arguments[environment].map { _ = unlink($0) } }
        announce(addresses, topics, asJSON: arguments[json])
        let access = KafkaAccess(properties: options.kafka, topics: topics, brokers: kafka.bootstrapServers)
        let (endpoint, reader, asJSON) = (options.redis, configuration.jobReader, arguments[json])
        let showing = demo.map { demo in Task { await show(demo, access, endpoint, reader, asJSON: asJSON) } }

        Task { end.yield("redis-server exited unexpectedly: \(await redis.process.exit())") }
        let reason = await ends.first { _ in true } ?? nil
        if let reason { log.error("\(reason)") }
        showing?.cancel()
        let isShown = await showing?.value ?? true
        let grace = options.grace
        async let served: Void = gateway.shutdown(gracePeriod: grace)
        _ = await WorkerCommand.drain(worker, companions, tracing, grace: grace, log)
        await served
        await redis.process.stop()
        await kafka.stop()
        return reason == nil && isShown ? .done : .failed
    }

    /// Runs the demo.
    /// - Returns: false on failure. An interrupted demo is not a failure.
    private static func show(
        _ demo: Demo, _ kafka: KafkaAccess, _ redis: RedisEndpoint, _ reader: JobDecoder, asJSON: Bool
    ) async -> Bool {
        do {
            let code = try await demo.run(kafka, redis, reader, asJSON: asJSON)
            if code != .interrupted, !asJSON {
                Console.print("The results are in \(demo.folder). Ctrl-C stops the cluster.")
            }
            return code != .failed
        } catch {
            guard !Task.isCancelled else { return true }
            Console.complain("--demo: \(error)")
            return false
        }
    }

    /// Starts a gateway for the cluster of `worker`. If `gateway.listen` is not set and its default port is in use, for
    /// example by another `halcyon dev`, the gateway uses a free port and says so.
    private static func startGateway(
        _ options: GatewayOptions, _ configuration: Configuration, beside worker: WorkerOptions, log: Log,
        metrics: Metrics, tracer: Tracer?, onEnd: @escaping @Sendable (KafkaError) -> Void
    ) async throws -> Gateway {
        var options = options
        (options.kafka, options.redis) = (worker.kafka, worker.redis)
        options.samples = EmbeddedFiles.photographs
        let listenAddresses = configuration.options.gatewayListen
        do {
            return try await GatewayCommand.start(
                options, on: listenAddresses, log: log, metrics: metrics, tracer: tracer, onEnd: onEnd)
        } catch let error as ConfigurationError {
            guard error.isAddressInUse, configuration.settings.origin(of: \.gatewayListen) == .builtIn else {
                throw error
            }
            let ports = listenAddresses.map { "\($0.port)" }.joined(separator: ", ")
            Console.complain("port \(ports) is in use; the gateway uses a free one")
            return try await GatewayCommand.start(
                options, on: listenAddresses.map { HostPort(host: $0.host, port: 0) }, log: log, metrics: metrics,
                tracer: tracer, onEnd: onEnd)
        }
    }

    private struct Addresses {
        let kafka: String
        let redis: String
        let gateway: String

        /// The shell command that sets the variables for other commands.
        var exports: String {
            "export HALCYON_KAFKA_BROKERS=\(kafka) HALCYON_REDIS_URL=redis://\(redis)"
        }
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
                  Samples   \(addresses.gateway)/samples/chelsea.jpg, astronaut.jpg, coffee.jpg
                In another terminal:
                  \(addresses.exports)
                  halcyon submit \(addresses.gateway)/samples/chelsea.jpg --width 400 --height 300 --output images
                Ctrl-C stops the cluster.
                """)
        }
    }
}

/// The demo of `halcyon dev --demo`: one photograph, sized and processed in several ways, and an avatar.
struct Demo: Sendable {
    /// The absolute path of the folder with the photograph and the results. Jobs can load files from it.
    let folder: String

    /// Creates the folder and writes the photograph to it.
    /// - Throws: ``FileError``.
    init(in folder: String) async throws {
        try await Files.makeFolder(folder)
        try await Files.write(EmbeddedFiles.photographs["chelsea.jpg"]!, to: "\(folder)/chelsea.jpg")
        guard let path = realpath(folder, nil) else { throw FileError("cannot find \(folder)", errno) }
        defer { free(path) }
        self.folder = String(cString: path)
    }

    /// Submits the jobs, waits for them, prints a line for each image and writes the images to the folder.
    func run(_ kafka: KafkaAccess, _ redis: RedisEndpoint, _ reader: JobDecoder, asJSON: Bool) async throws -> ExitCode
    {
        let jobs = try jobs(reader)
        let submission = Submission(batch: SubmittedJobs(jobs), kafka: kafka, timeout: nil, asJSON: asJSON)
        return try await redis.withClient { client in
            try await submission.wait(
                writingTo: OutputDirectory(folder: folder, results: ResultCache(client), stems: jobs.map(\.job.id)))
        }
    }

    private func jobs(_ reader: JobDecoder) throws -> [ValidatedJob] {
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
            let draft = try JobBuilder(
                json: Array(#"{"id":"\#(id)",\#(fields)}"#.utf8), maximumSize: reader.maximumBytes)
            return try ValidatedJob(draft, fallbackID: id, by: reader)
        }
    }
}

/// A private redis-server: in memory, on loopback, and terminated with this process, however it ends.
struct PrivateRedis: Sendable {
    let port: UInt16
    let process: ChildProcess

    /// Starts redis-server and waits until it reports that it is ready.
    /// - Throws: ``CommandError`` if redis-server is not installed or does not start.
    static func start() async throws -> PrivateRedis {
        guard findExecutable("redis-server") != nil else {
            throw CommandError(
                "no redis-server in PATH; install it with `make deps` (Debian: apt-get install redis-server)")
        }
        let port = LoopbackPort.reserve()
        let process = try await ChildProcess.start(
            "redis-server",
            [
                "--port", "\(port)", "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", "/",
                "--maxmemory", "512mb", "--maxmemory-policy", "volatile-ttl",
            ], readyWhenItSays: "Ready to accept connections")
        if let process { return PrivateRedis(port: port, process: process) }
        throw CommandError("redis-server exits immediately after it starts; run it manually to see the reason")
    }
}
