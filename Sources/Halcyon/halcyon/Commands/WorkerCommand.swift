import Arguments
import Glibc
import HalcyonWorker
import Processes
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

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let configuration = try Configuration(arguments)
        let options = try configuration.worker()
        let writer = configuration.logWriter()
        let log = Log(level: configuration.settings[Keys.logLevel], sink: writer)
        defer { writer.shutdown() }

        let signals = Signals.stream(of: [SIGINT, SIGTERM])
        let worker = try await Worker.start(options, log: log, metrics: Metrics())
        log.notice(
            "worker started",
            ["version": Version.number, "group": options.group, "threads": options.concurrency])
        _ = await signals.first { _ in true }
        let cutShort = await drain(worker, grace: options.grace, signals, log)
        return cutShort == 0 ? .done : .failed
    }

    /// Drains a worker; one more of `signals` ends the process at once.
    /// - Returns: how many jobs were cut short.
    static func drain(
        _ worker: Worker, grace: Duration, _ signals: AsyncStream<Int32>, _ log: Log
    ) async -> Int {
        log.notice("draining", ["grace": "\(grace)"])
        let impatience = Task {
            for await number in signals { _exit(128 + number) }
        }
        defer { impatience.cancel() }
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
