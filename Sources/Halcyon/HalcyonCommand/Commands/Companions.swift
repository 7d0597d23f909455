import Formats
import HTTPServer
import HalcyonNotify
import HalcyonTelemetry
import HalcyonWorker
import Kafka
import Telemetry

/// What runs beside a worker in its process: who tells others of events, and who answers probes where `http.listen` says so.
struct Companions: Sendable {
    /// Tells subscribers of Redis, and webhooks.
    let notifier: Notifier
    private let probes: [ProbeServer]

    /// Starts them.
    /// - Parameter onEnd: called when the notifier can do nothing more, with the reason.
    /// - Throws: ``ConfigurationError`` when nobody can listen where `http.listen` says; `KafkaError` that names a property which
    ///   librdkafka refuses.
    static func start(
        beside worker: Worker, _ options: WorkerOptions, _ configuration: Configuration, log: Log, metrics: Metrics,
        onEnd: @escaping @Sendable (KafkaError) -> Void = { _ in }
    ) async throws -> Companions {
        let probes = Probes(
            metrics: metrics,
            health: {
                let (liveness, progress) = worker.liveness
                guard liveness.isStuck else { return [] }
                return progress.obstacles(at: .now, patience: options.health.patience).map(\.description)
            },
            readiness: { worker.isServing ? [] : ["the group has given this worker no share, or it leaves"] })
        var servers: [ProbeServer] = []
        do {
            for place in configuration.options.httpListen {
                servers.append(try listen(at: place, probes, log))
            }
            let notifier = try await Notifier.start(
                configuration.notifier(beside: options), log: log, metrics: metrics, onEnd: onEnd)
            return Companions(notifier: notifier, probes: servers)
        } catch {
            for server in servers { await server.stop() }
            throw error
        }
    }

    private static func listen(at place: HostPort, _ probes: Probes, _ log: Log) throws -> ProbeServer {
        do throws(HTTPServerError) {
            let server = try ProbeServer.start(probes, on: place.host, port: place.port, log: log)
            log.notice("probes are answered", ["at": "\(HostPort(host: place.host, port: server.port))"])
            return server
        } catch {
            throw ConfigurationError("http.listen: \(error)")
        }
    }

    /// Has the notifier finish what it began within `grace`; probes are answered until then.
    func drain(grace: Duration) async {
        await notifier.drain(grace: grace)
        for server in probes { await server.stop() }
    }
}
