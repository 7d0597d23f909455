import Formats
import HTTPServer
import HalcyonNotifications
import HalcyonTelemetry
import HalcyonWorker
import Kafka
import Telemetry

/// The services that run in a worker's process: the notifier, and probe servers on the addresses of `http.listen`.
struct BackgroundServices: Sendable {
    /// Publishes events to Redis subscribers and webhooks.
    let notifier: Notifier
    private let probes: [ProbeServer]

    /// Starts the services.
    /// - Parameter onEnd: the callback for a fatal error of the notifier.
    /// - Throws: ``ConfigurationError`` if an address of `http.listen` cannot be listened on, `KafkaError` that names a
    ///   property which librdkafka rejects.
    static func start(
        beside worker: Worker, _ options: WorkerOptions, _ configuration: Configuration, log: Log, metrics: Metrics,
        onEnd: @escaping @Sendable (KafkaError) -> Void
    ) async throws -> BackgroundServices {
        let probes = Probes(
            metrics: metrics,
            health: {
                let (liveness, progress) = worker.liveness
                guard liveness.isStuck else { return [] }
                return progress.obstacles(at: .now, stuckAfter: options.health.stuckAfter).map(\.description)
            },
            readiness: { worker.isServing ? [] : ["no partitions assigned, or the worker is draining"] })
        var servers: [ProbeServer] = []
        do {
            try await servers.listen(on: configuration.options.httpListen, probes, log)
            let notifier = try await Notifier.start(
                configuration.notifier(beside: options), log: log, metrics: metrics, onEnd: onEnd)
            return BackgroundServices(notifier: notifier, probes: servers)
        } catch {
            await servers.stop()
            throw error
        }
    }

    /// Drains the notifier within the grace period. Probes are served until it has finished.
    func shutdown(gracePeriod grace: Duration) async {
        await notifier.shutdown(gracePeriod: grace)
        await probes.stop()
    }
}

extension [ProbeServer] {
    /// Starts probe servers on the addresses of `http.listen`.
    /// - Throws: ``ConfigurationError`` if an address cannot be listened on. The array has no servers then.
    mutating func listen(on addresses: [HostPort], _ probes: Probes, _ log: Log) async throws(ConfigurationError) {
        do throws(HTTPServerError) {
            for address in addresses {
                let server = try ProbeServer.start(probes, on: address.host, port: address.port, log: log)
                log.notice("probe server is listening", ["at": "\(HostPort(host: address.host, port: server.port))"])
                append(server)
            }
        } catch {
            await stop()
            self = []
            throw ConfigurationError(error, of: "http.listen")
        }
    }

    func stop() async { for server in self { await server.stop() } }
}
