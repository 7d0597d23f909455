import Glibc
import HalcyonResults
import HalcyonTelemetry
import HalcyonWorker
import Kafka
import ProgramSettings
import Telemetry

/// `halcyon worker`: processes jobs until it is stopped.
enum WorkerCommand: Subcommand {
    static let command = Command(
        "worker", summary: "Process jobs from Kafka until SIGTERM, then drain.",
        discussion: """
            Any number of workers can run; they share the partitions. On SIGTERM or Ctrl-C a worker stops consuming, \
            finishes its jobs within the grace period worker.grace, commits its offsets and leaves the group. A second \
            signal ends it immediately (exit code 130 or 143). Unfinished jobs are redelivered to other workers.

            A worker that makes no progress for health.stuckAfter becomes unhealthy. After health.exitAfter it exits \
            with code 70, so run it under a supervisor that restarts it.

            The worker process also runs a notifier. It publishes the committed events of the event topic to Redis \
            subscribers (notifications.redis) and webhooks (webhooks.urls, webhooks.allow).

            With http.listen the worker serves /healthz (liveness), /readyz (readiness) and /metrics (for Prometheus).

            With exactly-once delivery, consumers that read only committed events see each job end once. A worker \
            exits with code 1 if another worker with the same name (worker.instance) takes over.
            """,
        examples: [
            .init(
                "HALCYON_KAFKA_BROKERS=kafka:9092 HALCYON_REDIS_URL=redis://redis halcyon worker",
                "Run a worker in a cluster.")
        ])

    static let handlesSignals = true

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let configuration = try Configuration(arguments)
        let options = try configuration.worker()
        try configuration.prepareImaging()
        let writer = configuration.logWriter()
        let log = Log(level: configuration.options.logLevel, sink: writer)
        defer { writer.shutdown() }

        // The worker ends on a signal, or on a fatal error, which is the element of the stream.
        let (ends, end) = AsyncStream<KafkaError?>.makeStream()
        StopRequest.listen { end.yield(nil) }
        let onStuck: @Sendable () -> Void = {
            writer.shutdown()
            // Exit without waiting for stuck threads.
            _exit(ExitCode.stuck.rawValue)
        }
        let metrics = Metrics.ofProgram()
        metrics.readVips()
        let tracing = configuration.traces.map { Tracing($0, log: log, metrics: metrics) }
        let worker: Worker
        do {
            worker = try await Worker.start(
                options, log: log, metrics: metrics, tracer: tracing?.tracer, onStuck: onStuck,
                onEnd: { end.yield($0) })
        } catch {
            await tracing?.close(within: .zero)
            if let error = error as? StorageError { throw ConfigurationError("results.store: \(error)") }
            throw error
        }
        let companions: BackgroundServices
        do {
            companions = try await .start(
                beside: worker, options, configuration, log: log, metrics: metrics, onEnd: { end.yield($0) })
        } catch {
            _ = await worker.shutdown(gracePeriod: .zero)
            await tracing?.close(within: .zero)
            throw error
        }
        log.notice(
            "worker started",
            ["version": Version.number, "group": options.group, "threads": options.concurrency])
        let reason = await ends.first { _ in true } ?? nil
        if let reason { log.critical("worker is shutting down after a fatal error", ["reason": "\(reason)"]) }
        let cutShort = await drain(worker, companions, tracing, grace: options.grace, log)
        return cutShort == 0 && reason == nil ? .done : .failed
    }

    /// Drains a worker and its background services.
    /// - Returns: the number of jobs that were interrupted.
    static func drain(
        _ worker: Worker, _ companions: BackgroundServices, _ tracing: Tracing?, grace: Duration, _ log: Log
    ) async -> Int {
        log.notice("worker is draining", ["grace": grace])
        let clock = ContinuousClock()
        let deadline = clock.now + grace
        var cutShort = 0
        let took = await clock.measure {
            async let told: Void = companions.shutdown(gracePeriod: grace)
            cutShort = await worker.shutdown(gracePeriod: grace)
            await told
            await tracing?.close(by: deadline)
        }
        if cutShort > 0 {
            log.warning("worker left with unfinished jobs; they will be redelivered", ["jobs": cutShort])
        }
        log.notice("worker has stopped", ["after": took])
        return cutShort
    }
}
