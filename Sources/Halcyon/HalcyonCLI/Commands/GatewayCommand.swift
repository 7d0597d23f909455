import Formats
import HTTPServer
import HalcyonGateway
import HalcyonResults
import HalcyonTelemetry
import Kafka
import ProgramSettings
import Telemetry

/// `halcyon gateway`: serves the HTTP API until it is stopped.
enum GatewayCommand: Subcommand {
    static let command = Command(
        "gateway", summary: "Serve the HTTP API for jobs, images and events until SIGTERM.",
        discussion: """
            For clients without Kafka: POST /v1/jobs accepts jobs, GET /v1/images/{key} returns a stored result, GET \
            /v1/render renders an image and waits for it, GET /v1/events streams events. For operators: the dashboard \
            at /, GET /v1/cluster with the workers and the lag of each lane, GET /v1/dead and POST /v1/dead/replay for \
            dead letters. Any number of gateways can run behind a load balancer, because accepted jobs are on Kafka.

            API keys (gateway.keys, gateway.scopes) and signed URLs (gateway.urlKeys) control access. Without any key \
            every client has full access, and the gateway listens only on loopback addresses unless \
            gateway.allowAnonymous is true.

            Images can also be served under the URLs of imgproxy, thumbor and imagor (gateway.urls).

            The gateway also serves /healthz, /readyz and /metrics. With http.listen these have an address of their \
            own, and /metrics is not served to clients. On SIGTERM or Ctrl-C it drains: requests in flight \
            have the grace period worker.grace to complete.
            """,
        examples: [
            .init("halcyon gateway", "Serve this machine on http://127.0.0.1:8080."),
            .init(
                "HALCYON_GATEWAY_KEYS_shop=$(openssl rand -hex 32) halcyon gateway --set gateway.listen=0.0.0.0:8080",
                "Serve other machines. Clients send the secret in an Authorization: Bearer header."),
        ])

    static let handlesSignals = true

    static func run(_ arguments: ParsedCommand) async throws -> ExitCode {
        let configuration = try Configuration(arguments)
        var options = try configuration.gateway()
        options.servesMetrics = configuration.options.httpListen.isEmpty
        let writer = configuration.logWriter()
        let log = Log(level: configuration.options.logLevel, sink: writer)
        defer { writer.shutdown() }

        // The gateway ends on a signal, or on a fatal error, which is the element of the stream.
        let (ends, end) = AsyncStream<KafkaError?>.makeStream()
        StopRequest.listen { end.yield(nil) }
        let metrics = Metrics.ofProgram()
        let tracing = configuration.traces.map { Tracing($0, log: log, metrics: metrics) }
        var probes: [ProbeServer] = []
        let gateway: Gateway
        do {
            gateway = try await start(
                options, on: configuration.options.gatewayListen, log: log, metrics: metrics,
                tracer: tracing?.tracer, onEnd: { end.yield($0) })
            do {
                try await probes.listen(on: configuration.options.httpListen, gateway.probes, log)
            } catch {
                await gateway.shutdown(gracePeriod: .zero)
                throw error
            }
        } catch {
            await tracing?.close(within: .zero)
            throw error
        }
        let reason = await ends.first { _ in true } ?? nil
        if let reason { log.critical("gateway is shutting down after a fatal error", ["reason": "\(reason)"]) }
        let grace = configuration.options.worker.grace
        log.notice("gateway is draining", ["grace": grace])
        let deadline = ContinuousClock.now + grace
        await gateway.shutdown(gracePeriod: grace)
        await probes.stop()
        await tracing?.close(by: deadline)
        log.notice("gateway has stopped")
        return reason == nil ? .done : .failed
    }

    /// Starts a gateway that listens on all of the given addresses.
    /// - Parameter onEnd: the callback for a fatal error of its producer.
    /// - Throws: ``ConfigurationError`` if an address or the result store cannot be used, `KafkaError` that names a
    ///   property which librdkafka rejects.
    static func start(
        _ options: GatewayOptions, on addresses: [HostPort], log: Log, metrics: Metrics, tracer: Tracer?,
        onEnd: @escaping @Sendable (KafkaError) -> Void
    ) async throws -> Gateway {
        do {
            let gateway = try await Gateway.start(
                options, on: addresses.map { ($0.host, $0.port) }, log: log, metrics: metrics, tracer: tracer,
                onEnd: onEnd)
            for (address, port) in zip(addresses, gateway.ports) {
                log.notice("gateway is listening", ["at": "http://\(HostPort(host: address.host, port: port))"])
            }
            return gateway
        } catch let error as HTTPServerError {
            throw ConfigurationError(error, of: "gateway.listen")
        } catch let error as StorageError {
            throw ConfigurationError("results.store: \(error)")
        } catch let error as OpenGatewayError {
            throw ConfigurationError("gateway.listen: \(error)")
        }
    }
}

extension ConfigurationError {
    /// Creates the error of a setting with an address that cannot be listened on.
    init(_ error: HTTPServerError, of setting: String) {
        let advice =
            error.isAddressInUse ? "; stop the other program, or use any free port: --set \(setting)=127.0.0.1:0" : ""
        self.init("\(setting): \(error)\(advice)", isAddressInUse: error.isAddressInUse)
    }
}
