import Glibc
import HalcyonTelemetry
import HalcyonWorker
import Kafka
import ProgramSettings
import Telemetry

/// `halcyon worker`: takes jobs until it is told to stop.
enum WorkerCommand: Subcommand {
    static let command = Command(
        "worker", summary: "Take jobs from Kafka until SIGTERM, then drain.",
        discussion: """
            Any number of workers may run; they share the jobs. On SIGTERM or Ctrl-C a worker takes no more, finishes what it began \
            within worker.grace, commits and leaves; a second signal ends it at once (exit code 130 or 143), and nothing is lost by \
            that either. A worker that does not get on for health.patience says so, and ends itself after worker.stuckLimit (exit code \
            70): have it started again.

            Beside it runs a notifier, which tells the subscribers of Redis (notify.redis) and webhooks (webhooks.urls, webhooks.allow) what was \
            committed to the topic of events.

            With http.listen it answers /healthz (whether it gets on), /readyz (whether it takes jobs) and /metrics (for Prometheus).

            With delivery exactly-once, who reads committed events sees each job end once. A worker whose name (worker.instance) \
            another one takes over says so and ends with 1.
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
        let log = Log(level: configuration.options.logLevel, sink: writer)
        defer { writer.shutdown() }

        // Whatever comes first: somebody stops it, or it can do nothing more, which is a reason to say.
        let (ends, end) = AsyncStream<KafkaError?>.makeStream()
        StopRequest.listen { end.yield(nil) }
        let whenHopeless: @Sendable () -> Void = {
            writer.shutdown()
            // Nothing is to wait for what hangs.
            _exit(ExitCode.stuck.rawValue)
        }
        let metrics = Metrics.ofProgram()
        metrics.readVips()
        let tracing = configuration.traces.map { Tracing($0, log: log, metrics: metrics) }
        let worker: Worker
        do {
            worker = try await Worker.start(
                options, log: log, metrics: metrics, tracer: tracing?.tracer, whenHopeless: whenHopeless,
                onEnd: { end.yield($0) })
        } catch {
            await tracing?.close(within: .zero)
            throw error
        }
        let companions: Companions
        do {
            companions = try await .start(
                beside: worker, options, configuration, log: log, metrics: metrics, onEnd: { end.yield($0) })
        } catch {
            _ = await worker.drain(grace: .zero)
            await tracing?.close(within: .zero)
            throw error
        }
        log.notice(
            "worker started",
            ["version": Version.number, "group": options.group, "threads": options.concurrency])
        let reason = await ends.first { _ in true } ?? nil
        if let reason { log.critical("the worker ends", ["reason": "\(reason)"]) }
        let cutShort = await drain(worker, companions, tracing, grace: options.grace, log)
        return cutShort == 0 && reason == nil ? .done : .failed
    }

    /// Drains a worker and what runs beside it.
    /// - Returns: how many jobs were cut short.
    static func drain(
        _ worker: Worker, _ companions: Companions, _ tracing: Tracing?, grace: Duration, _ log: Log
    ) async -> Int {
        log.notice("draining", ["grace": grace])
        let clock = ContinuousClock()
        let deadline = clock.now + grace
        var cutShort = 0
        let took = await clock.measure {
            async let told: Void = companions.drain(grace: grace)
            cutShort = await worker.drain(grace: grace)
            await told
            await tracing?.close(by: deadline)
        }
        if cutShort > 0 {
            log.warning("left with unfinished jobs; another worker takes them", ["jobs": cutShort])
        }
        log.notice("stopped", ["after": took])
        return cutShort
    }
}
