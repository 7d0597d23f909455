import Formats
import HTTPServer
import HalcyonGateway
import HalcyonTelemetry
import Kafka
import ProgramSettings
import Telemetry

/// `halcyon gateway`: the cluster over HTTP, until it is told to stop.
enum GatewayCommand: Subcommand {
    static let command = Command(
        "gateway", summary: "Serve jobs, images and events over HTTP until SIGTERM.",
        discussion: """
            For everyone who does not speak Kafka: POST /v1/jobs takes jobs, GET /v1/images/{key} gives what is stored, GET /v1/render makes an image \
            and waits for it, GET /v1/events follows events. For operators: the dashboard at /, GET /v1/cluster with the lag of each lane and the workers, \
            GET /v1/dead and POST /v1/dead/replay for dead letters. Any number of gateways may stand behind a load balancer: what one has taken is on Kafka.

            Who may do what is said by keys (gateway.keys, gateway.scopes), and by URLs that are signed (gateway.urlKeys). Without any key everybody \
            may do everything, and then only addresses of this machine itself are listened on, unless gateway.open is true.

            /healthz, /readyz and /metrics are answered too. On SIGTERM or Ctrl-C requests that are under way have worker.grace to end.
            """,
        examples: [
            .init("halcyon gateway", "For this machine, on http://127.0.0.1:8080."),
            .init(
                "HALCYON_GATEWAY_KEYS_shop=$(openssl rand -hex 32) halcyon gateway --set gateway.listen=0.0.0.0:8080",
                "For others, who send the header `Authorization: Bearer` with that secret."),
        ])

    static let handlesSignals = true

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let configuration = try Configuration(arguments)
        let options = try configuration.gateway()
        let writer = configuration.logWriter()
        let log = Log(level: configuration.options.logLevel, sink: writer)
        defer { writer.shutdown() }

        // Whatever comes first: somebody stops it, or it can do nothing more, which is a reason to say.
        let (ends, end) = AsyncStream<KafkaError?>.makeStream()
        StopRequest.listen { end.yield(nil) }
        let metrics = Metrics.ofProgram()
        let tracing = configuration.traces.map { Tracing($0, log: log, metrics: metrics) }
        let gateway: Gateway
        do {
            gateway = try await start(
                options, on: configuration.options.gatewayListen, log: log, metrics: metrics,
                tracer: tracing?.tracer)
        } catch {
            await tracing?.close(within: .zero)
            throw error
        }
        let reason = await ends.first { _ in true } ?? nil
        if let reason { log.critical("the gateway ends", ["reason": "\(reason)"]) }
        let grace = configuration.options.worker.grace
        log.notice("draining", ["grace": grace])
        let deadline = ContinuousClock.now + grace
        await gateway.drain(grace: grace)
        await tracing?.close(by: deadline)
        log.notice("stopped")
        return reason == nil ? .done : .failed
    }

    /// Starts a gateway on all of these places.
    /// - Throws: ``ConfigurationError`` when nobody can listen there; `KafkaError` that names a property which librdkafka refuses.
    static func start(
        _ options: GatewayOptions, on places: [HostPort], log: Log, metrics: Metrics, tracer: Tracer?
    ) async throws -> Gateway {
        do {
            let gateway = try await Gateway.start(
                options, on: places.map { ($0.host, $0.port) }, log: log, metrics: metrics, tracer: tracer)
            for (place, port) in zip(places, gateway.ports) {
                log.notice("the gateway listens", ["at": "http://\(HostPort(host: place.host, port: port))"])
            }
            return gateway
        } catch let error as HTTPServerError {
            throw ConfigurationError("gateway.listen: \(error)")
        } catch let error as OpenGatewayError {
            throw ConfigurationError("gateway.listen: \(error)")
        }
    }
}
