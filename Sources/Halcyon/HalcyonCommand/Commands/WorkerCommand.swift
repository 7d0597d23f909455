import Arguments
import HalcyonWorker
import Telemetry

/// `halcyon worker`: takes jobs until it is told to stop.
enum WorkerCommand: Subcommand {
    static let command = Command(
        "worker", summary: "Take jobs from Kafka until SIGTERM, then drain.",
        discussion: """
            Any number of workers may run; they share the jobs. On SIGTERM or Ctrl-C a worker takes no more, finishes what it began \
            within worker.grace, commits and leaves; a second signal ends it at once, and nothing is lost by that either.
            """,
        examples: [
            .init(
                "HALCYON_KAFKA_BROKERS=kafka:9092 HALCYON_REDIS_URL=redis://redis halcyon worker",
                "A worker in a cluster.")
        ])

    static let handlesSignals = true

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let configuration = try Configuration(arguments)
        let options = try configuration.worker()
        configuration.openFormats()
        let writer = configuration.logWriter()
        let log = Log(level: configuration.settings[Keys.logLevel], sink: writer)
        defer { writer.shutdown() }

        let (requests, request) = AsyncStream<Void>.makeStream()
        StopRequest.listen { request.yield() }
        let worker = try await Worker.start(options, log: log, metrics: Metrics())
        log.notice(
            "worker started",
            ["version": Version.number, "group": options.group, "threads": options.concurrency])
        _ = await requests.first { true }
        let cutShort = await drain(worker, grace: options.grace, log)
        return cutShort == 0 ? .done : .failed
    }

    /// Drains a worker.
    /// - Returns: how many jobs were cut short.
    static func drain(_ worker: Worker, grace: Duration, _ log: Log) async -> Int {
        log.notice("draining", ["grace": "\(grace)"])
        let clock = ContinuousClock()
        var cutShort = 0
        let took = await clock.measure { cutShort = await worker.drain(grace: grace) }
        if cutShort > 0 {
            log.warning("left with unfinished jobs; another worker takes them", ["jobs": cutShort])
        }
        log.notice("stopped", ["after": "\(took)"])
        return cutShort
    }
}
